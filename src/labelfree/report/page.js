"use strict";
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const first = Number(table.dataset.first);
  const filter = document.getElementById("filter");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const order = new Map(rows.map((row, place) => [row, place]));
  const names = new Map(rows.map((row) => [row, row.cells[0].textContent.toLowerCase()]));
  const printed = document.getElementById("printed");
  const chart = document.getElementById("chart-rates");
  const marks = [...chart?.querySelectorAll("[data-said]") ?? []];
  // A mark says "name: sensitivity …"; an invisible sign may stand in its name.
  const marked = new Map(marks.map((mark) => [mark, mark.dataset.said.split(": ").slice(0, -1).join(": ").replaceAll("\u2060", "").toLowerCase()]));
  const grouped = (number) => number.toLocaleString("en");
  let all = rows.length <= first;

  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    let found = 0, shown = 0;
    for (const row of body.rows) {
      const fits = names.get(row).includes(wanted);
      found += fits;
      row.hidden = !fits || (!all && found > first);
      shown += !row.hidden;
    }
    count.textContent = `Showing ${grouped(shown)} of ${grouped(rows.length)}`;
    printed.textContent = `${grouped(shown)} of ${grouped(rows.length)} are printed.`;
    printed.hidden = shown === rows.length;
    more.parentElement.hidden = all || found <= first;
    more.textContent = `Show all ${grouped(found)}`;
    // Who is looked for lights up in the chart, too.
    chart?.classList.toggle("found", wanted !== "" && found > 0);
    for (const mark of marks) mark.classList.toggle("lit", wanted !== "" && marked.get(mark).includes(wanted));
  };

  const key = (row, column, kind) => {
    const cell = row.cells[column];
    return kind === "number" ? Number(cell.dataset.value) : cell.textContent.trim();
  };

  const sort = (head) => {
    const column = head.cellIndex, kind = head.dataset.kind;
    const usual = kind === "number" ? "descending" : "ascending";
    const other = usual === "descending" ? "ascending" : "descending";
    const way = head.getAttribute("aria-sort") === usual ? other : usual;
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const compare = kind === "number" ? (a, b) => a - b : (a, b) => a.localeCompare(b, "en", { numeric: true });
    const keys = new Map(rows.map((row) => [row, key(row, column, kind)]));
    const sorted = [...rows].sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || order.get(a) - order.get(b));
    body.append(...sorted);
    show();
  };

  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }
  filter.addEventListener("input", show);
  more.addEventListener("click", () => { all = true; show(); body.rows[first].cells[0].scrollIntoView({ block: "nearest" }); });
  filter.parentElement.hidden = false;
  show();

  // What a mark of a chart says, where the mouse is.
  const said = document.getElementById("said");
  const place = (event) => {
    const mark = event.target.closest?.("[data-said]");
    said.hidden = !mark;
    if (!mark) return;
    said.textContent = mark.dataset.said;
    const left = Math.min(event.clientX + 14, innerWidth - said.offsetWidth - 8);
    const below = event.clientY + 18 + said.offsetHeight < innerHeight;
    said.style.left = `${Math.max(8, left)}px`;
    said.style.top = `${below ? event.clientY + 18 : event.clientY - said.offsetHeight - 10}px`;
  };
  document.addEventListener("pointermove", place);
  document.addEventListener("pointerdown", place);

  // One confusion matrix at a time, where there are many.
  const pick = document.getElementById("pick");
  if (pick) {
    const matrices = [...document.querySelectorAll(".matrices > *")];
    if (matrices.length > 12) {
      matrices.forEach((matrix, place) => pick.add(new Option(matrix.querySelector("caption").textContent, String(place))));
      pick.addEventListener("change", () => matrices.forEach((matrix, place) => { matrix.hidden = place !== Number(pick.value); }));
      pick.dispatchEvent(new Event("change"));
      pick.parentElement.hidden = false;
    }
  }

  // Where there is room, nothing need be folded away.
  if (innerWidth > 832) for (const each of document.querySelectorAll(".lists details")) each.open = true;

  // Paper shows what a click would.
  addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
})();
