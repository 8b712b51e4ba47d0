"""The section on the consensus: how it moves against the majority vote, and what to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelfree._movement import Movement
from labelfree._view import Graded, Row, percent, rounded

MOST_SPELLED = 12  # classifiers of a pattern whose votes are spelled out

LISTS = (
    (
        "uncertain",
        "Most uncertain",
        "The consensus is least sure here: a person's look tells most.",
    ),
    ("contested", "Most contested", "The votes are split most evenly here."),
    ("overruled", "Overruled", "The consensus is surest here that the majority is wrong."),
)


def consensus_section(estimate: Graded, movement: Movement | None) -> Row | None:
    """What the page says of the consensus; None where the votes are not at hand."""
    if movement is None:
        return None
    labels = [str(label) for label in estimate.classes]
    moved = movement.moved
    k = len(labels)
    clear, tied = float(moved[:k].sum()), float(moved[k].sum())
    changed = clear - float(moved[:k].trace())
    flows = [
        {
            "from": labels[i],
            "to": labels[j],
            "items": rounded(float(moved[i, j])),
            "count": float(moved[i, j]),
            "share": _share(float(moved[i, j]), clear),
        }
        for i in range(k)
        for j in range(k)
        if i != j and moved[i, j] > 0
    ]
    flows.sort(key=lambda flow: -float(str(flow["count"])))
    return {
        "items": rounded(movement.items),
        "unvoted": rounded(movement.unvoted) if movement.unvoted else "",
        "changed": rounded(changed),
        "share": _share(changed, clear),
        "tied": rounded(tied) if tied else "",
        "flows": flows[:8],
        "bars": _bars(movement, k),
        "by_pattern": movement.by_pattern,
        "part": movement.items < 0.999 * estimate.items - movement.unvoted,
        "labels": labels,
        "lists": [
            {
                "name": name,
                "title": title,
                "words": words,
                "rows": [_item(row, estimate.classifiers) for row in getattr(movement, name)],
            }
            for name, title, words in LISTS
            if getattr(movement, name)
        ],
    }


def _share(part: float, whole: float) -> str:
    """Write a share so that a few of many do not read as none."""
    share = part / whole if whole else 0.0
    return percent(share, 0 if share == 0 or share >= 0.01 else 1 if share >= 0.001 else 2)


def _item(row: dict[str, Any], classifiers: Sequence[str]) -> Row:
    item = row["item"]
    if isinstance(item, tuple):
        spelled = zip(classifiers, item, strict=True)
        item = (
            ", ".join(f"{name}: {'–' if vote is None else vote}" for name, vote in spelled)
            if len(classifiers) <= MOST_SPELLED
            else " ".join("–" if vote is None else str(vote) for vote in item[:60])
            + (" …" if len(item) > 60 else "")
        )
    return {
        "item": str(item),
        "items": rounded(row["items"]),
        "votes": " : ".join(str(count) for count in row["votes"]),
        "majority": "tie" if row["majority"] is None else str(row["majority"]),
        "label": str(row["label"]),
        "certainty": percent(row["certainty"]),
    }


def _bars(movement: Movement, k: int) -> list[Row]:
    """The histogram of certainty, as bars of a page."""
    agree, differ = movement.histogram
    bins = len(agree)
    tallest = max(float((agree + differ).max()), 1.0)
    step = (1 - 1 / k) / bins
    return [
        {
            "range": f"{100 * (1 / k + place * step):.0f}–{100 * (1 / k + (place + 1) * step):.0f} %",
            "total": rounded(float(agree[place] + differ[place])),
            "differ": rounded(float(differ[place])),
            "agree_wide": f"{100 * float(agree[place]) / tallest:.1f}",
            "differ_wide": f"{100 * float(differ[place]) / tallest:.1f}",
        }
        for place in range(bins)
    ]
