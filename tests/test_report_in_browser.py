"""The report in a real browser, from disk, with the network off: Debian's Chromium through Playwright."""

import shutil
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

import labelfree as lf

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
pytest.importorskip("altair", reason="the report needs its extra")

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no Chromium here: apt-get install chromium", allow_module_level=True)

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
DIGITS = str(files("labelfree") / "example" / "digits.csv")
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style><!--",
    "a'b",
    "&lt;",
]
CHARTS = {"rates", "imbalance", "pairs", "assumed"}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


def digits(folder):
    lf.estimate(DIGITS).report(folder / "digits.html", votes=DIGITS)


def hostile(folder):
    drawn = lf.simulate.votes(1500, classifiers=5, copies=[(0, 1)], seed=3)
    labels = np.array(["<b>no</b>", "</script><script>alert(4)</script>"])
    frame = pl.DataFrame(labels[drawn.votes], schema=HOSTILE)
    lf.estimate(frame).report(folder / "hostile.html", votes=frame)


def unidentified(folder):
    noise = np.random.default_rng(0).integers(0, 2, (300, 5))
    lf.estimate(noise).report(folder / "unidentified.html")


def many(folder):
    votes = lf.simulate.votes(800, classifiers=120, seed=2).votes
    lf.estimate(votes, dependence="test").report(folder / "many.html", votes=votes)


PAGES = {each.__name__: each for each in (digits, hostile, unidentified, many)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def opened(browser, folder):
    """Open a page as a reader would; everything that it complains of or asks for is noted."""
    contexts = []

    def open_page(name, width=1280, scheme="light", **more):
        path = folder / f"{name}.html"
        if not path.exists():
            PAGES[name](folder)
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **more
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.asked, page.dialogs = [], [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def names(page):
    return page.eval_on_selector_all(
        "#table tbody tr", "rows => rows.filter(r => !r.hidden).map(r => r.cells[0].textContent)"
    )


def column(page, place):
    return page.eval_on_selector_all(
        "#table tbody tr",
        f"rows => rows.filter(r => !r.hidden).map(r => Number(r.cells[{place}].dataset.value))",
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_disk_without_a_complaint_or_a_request(opened, name):
    page = opened(name)
    page.wait_for_timeout(100)
    assert page.complaints == []
    assert page.dialogs == []
    assert {url for url in page.asked if not url.startswith("data:")} == {page.url}
    assert page.locator("h1").inner_text().endswith("graded without labels")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(opened, name, scheme):
    page = opened(name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_only_downwards(opened, name):
    page = opened(name, width=390, is_mobile=True, has_touch=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("visualViewport.width") >= 389  # nothing was zoomed out to fit


def test_the_table_sorts_by_every_heading_both_ways(opened):
    page = opened("digits")
    assert column(page, 3) == sorted(column(page, 3), reverse=True)
    heads = page.locator("#table thead th button")
    for place in range(1, heads.count()):
        heads.nth(place).click()
        first = column(page, place)
        heads.nth(place).click()
        assert first in (sorted(first), sorted(first, reverse=True))
        assert column(page, place) == sorted(first, reverse=first == sorted(first))
        way = page.locator("#table thead th").nth(place).get_attribute("aria-sort")
        assert way == ("ascending" if column(page, place) == sorted(first) else "descending")
        assert page.locator("#table thead th[aria-sort]").count() == 1
    heads.nth(0).click()
    assert names(page) == sorted(names(page))


def test_the_table_sorts_and_filters_by_keyboard(opened):
    page = opened("digits")
    page.locator("#table thead th button").nth(1).focus()
    page.keyboard.press("Enter")
    assert column(page, 1) == sorted(column(page, 1), reverse=True)
    page.locator("#filter").focus()
    page.keyboard.type("NEAREST")
    assert sorted(names(page)) == ["nearest_centroid", "nearest_neighbour"]
    assert page.locator("#count").inner_text() == "Showing 2 of 10"
    page.locator("#filter").fill("")
    assert len(names(page)) == 10


def test_a_long_table_shows_the_first_rows_until_asked_for_all(opened):
    page = opened("many")
    assert len(names(page)) == 50
    page.locator("#filter").fill("classifier_12")
    assert len(names(page)) == 2
    page.locator("#filter").fill("")
    page.locator("#more").click()
    assert len(names(page)) == 120
    assert not page.locator("#more").is_visible()


def test_who_is_looked_for_lights_up_in_the_chart(opened):
    page = opened("many")
    marks = page.locator("#chart-rates [data-said]")
    assert marks.count() == 120
    page.locator("#filter").fill("classifier_120")
    lit = page.locator("#chart-rates .lit")
    assert lit.count() == 1
    assert lit.get_attribute("data-said").startswith("classifier_120: sensitivity")
    faint = page.locator("#chart-rates [data-said]:not(.lit)").first
    assert float(faint.evaluate("e => getComputedStyle(e).opacity")) < 0.2
    page.locator("#filter").fill("")
    assert lit.count() == 0
    assert float(marks.first.evaluate("e => getComputedStyle(e).opacity")) > 0.3


def test_paper_says_how_many_of_a_long_table_it_shows(opened):
    page = opened("many")
    page.emulate_media(media="print")
    assert page.locator("#printed").inner_text() == "50 of 120 are printed."
    page.emulate_media(media="screen")
    assert not page.locator("#printed").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_in_the_colours_of_the_page(opened, scheme):
    page = opened("digits", scheme=scheme)
    ids = page.eval_on_selector_all(".chart", "all => all.map(each => each.id.slice(6))")
    assert set(ids) == CHARTS
    for name in CHARTS:
        box = page.locator(f"#chart-{name} svg").bounding_box()
        assert box["width"] > 250
        assert box["height"] > 150
        assert page.locator(f"#chart-{name}").get_attribute("aria-label").strip().endswith(".")
    assert page.locator("#chart-rates [data-said]").count() == 10
    assert page.locator("#chart-pairs [data-said]").count() == 90
    colour = "e => getComputedStyle(e).fill"
    dot = page.eval_on_selector("#chart-rates [data-said]", colour)
    blue = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--blue')")
    red, green, end = (int(blue.strip()[i : i + 2], 16) for i in (1, 3, 5))
    assert dot == f"rgb({red}, {green}, {end})"


def test_a_mark_says_what_it_is_where_the_mouse_is(opened):
    page = opened("digits")
    page.locator("#chart-rates [data-said]").first.hover()
    said = page.locator("#said").inner_text()
    assert "sensitivity" in said
    assert said.split(":")[0] in names(page)


def test_hostile_names_stay_text(opened):
    page = opened("hostile")
    assert {name.replace("\u2060", "") for name in names(page)} == set(HOSTILE)
    for place in range(page.locator("#chart-rates [data-said]").count()):
        page.locator("#chart-rates [data-said]").nth(place).hover(force=True)
    assert page.dialogs == []
    assert page.complaints == []
    assert page.locator("img, script[src]").count() == 0


def test_the_page_can_be_read_without_scripts(opened):
    page = opened("digits", java_script_enabled=False)
    assert page.locator("#table tbody tr").count() == 10
    assert not page.locator("#filter").is_visible()
    assert page.locator("#chart-rates svg").is_visible()


def test_paper_shows_no_controls_and_all_charts(opened, tmp_path):
    page = opened("digits")
    page.emulate_media(media="print")
    assert not page.locator("#filter").is_visible()
    assert not page.locator(".skip").is_visible()
    assert page.locator("#chart-pairs svg").is_visible()
    page.pdf(path=tmp_path / "r.pdf", format="A4")
    assert (tmp_path / "r.pdf").stat().st_size > 20_000


def test_large_letters_do_not_push_the_page_sideways(opened):
    page = opened("digits", width=390)
    page.add_style_tag(content="html { font-size: 150% }")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
