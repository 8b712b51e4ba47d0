"""An estimate as a small table for notebooks; needs nothing beyond the package."""

from __future__ import annotations

from html import escape

from labelfree._errors import counted
from labelfree._shown import SHOWN_CLASSIFIERS
from labelfree._view import (
    Graded,
    is_binary,
    is_identified,
    is_rough,
    rounded,
    with_ends,
)

SHOWN_CLASSES = 12
LEFT, RIGHT = (f' style="text-align: {side}; padding: 2px 8px"' for side in ("left", "right"))


def notebook_html(estimate: Graded) -> str:
    """Write the table of the classifiers and the verdict as HTML; names are text and nothing else."""
    rows, rough = estimate.table(), is_rough(estimate)
    rates = estimate.rates if is_identified(estimate) else ()
    noted = any(row["note"] for row in rows)
    heads = ["classifier", *(rate.replace("_", " ") for rate in rates), "votes"]
    heads += ["note"] if noted else []
    body = []
    for row in rows[:SHOWN_CLASSIFIERS]:
        cells = [with_ends(row, rate, rough=rough) for rate in rates]
        cells += [rounded(row["votes"]), *([row["note"]] if noted else [])]
        name = f"<th{LEFT}>{escape(row['classifier'])}</th>"
        body.append(
            f"<tr>{name}{''.join(f'<td{RIGHT}>{escape(cell)}</td>' for cell in cells)}</tr>"
        )
    verdict = estimate.verdict
    whole = [f"{counted(len(rows), 'classifier')} on {rounded(estimate.items)} items"]
    if is_identified(estimate):
        whole.append(_shares(estimate, rough=rough))
        if rows[0]["balanced_accuracy_low"] is not None:
            whole.append(f"in parentheses {100 * estimate.level:g} % intervals")
    if len(rows) > SHOWN_CLASSIFIERS:
        whole.append(f"{len(rows) - SHOWN_CLASSIFIERS} more in .table()")
    head = "".join(f"<th{LEFT if head == 'classifier' else RIGHT}>{head}</th>" for head in heads)
    helps = [f"What would help: {advice}" for advice in verdict.advice]
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in (*verdict.reasons, *helps))
    return (
        f"<div><p><strong>Verdict: {verdict.level}</strong></p><ul>{reasons}</ul>"
        f"<p>{escape('; '.join(whole))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _shares(estimate: Graded, *, rough: bool) -> str:
    """The prevalence, or how common each of more than two classes is."""
    shares = [with_ends(row, "share", rough=rough) for _, row in estimate.shares()]
    if is_binary(estimate):
        return f"prevalence of {estimate.classes[-1]} {shares[0]}"
    told = zip(estimate.classes[:SHOWN_CLASSES], shares[:SHOWN_CLASSES], strict=True)
    words = ", ".join(f"{label} {share}" for label, share in told)
    more = len(shares) - SHOWN_CLASSES
    return f"classes: {words}{f' and {more} more' if more > 0 else ''}"
