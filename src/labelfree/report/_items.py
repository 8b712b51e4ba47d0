"""The section on the consensus: how it moves against the majority vote, and what to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelfree._movement import Movement
from labelfree._view import Graded, Row, certain, percent, rounded, short

MOST_SPELLED = 60  # letters of a pattern's votes
MOST_NAMED = 20  # classifiers whose order is spelled out
MOST_FLOWS = 8
MOST_LETTERS = 24  # of two labels that stand in the heading of the votes
MOST_BALLOTS = 4  # labels of an item whose votes are counted
MOST_OF_A_LABEL = 18  # letters of a label in a list

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
    labels = [short(str(label), MOST_OF_A_LABEL) for label in estimate.classes]
    moved = movement.moved
    k = len(labels)
    in_heading = k == 2 and sum(map(len, labels)) <= MOST_LETTERS
    clear, tied = float(moved[:k].sum()), float(moved[k].sum())
    changed = clear - float(moved[:k].trace())
    flows: list[Row] = [
        {
            "from": labels[i],
            "to": labels[j],
            "number": float(moved[i, j]),
            "counted": rounded(float(moved[i, j])),
            "share": _share(float(moved[i, j]), clear),
        }
        for i in range(k)
        for j in range(k)
        if i != j and moved[i, j] > 0
    ]
    flows.sort(key=lambda flow: -flow["number"])
    return {
        "unvoted": _items_of(movement.unvoted) if movement.unvoted else "",
        "changed": _items_of(changed),
        "share": _share(changed, clear),
        "tied": _items_of(tied) if tied else "",
        "flows": flows[:MOST_FLOWS],
        "more_flows": len(flows) > MOST_FLOWS,
        "bars": _bars(movement, k),
        "by_pattern": movement.by_pattern,
        "part": movement.items < 0.999 * estimate.items - movement.unvoted,
        "order": list(estimate.classifiers[:MOST_NAMED]),
        "unnamed": max(len(estimate.classifiers) - MOST_NAMED, 0),
        "spelled": " : ".join(labels) if in_heading else "",
        "lists": [
            {
                "name": name,
                "title": title,
                "words": words,
                "rows": [
                    _item(row, None if in_heading else labels) for row in getattr(movement, name)
                ],
            }
            for name, title, words in LISTS
            if getattr(movement, name)
        ],
    }


def _items_of(number: float) -> str:
    """``1 item``, ``1,398 items``; weighted votes may leave a part of one."""
    return f"{rounded(number)} item{'' if number == 1 else 's'}"


def _share(part: float, whole: float) -> str:
    """Write a share so that a few of many do not read as none."""
    share = part / whole if whole else 0.0
    return percent(share, 0 if share == 0 or share >= 0.01 else 1 if share >= 0.001 else 2)


def _item(row: dict[str, Any], labels: Sequence[str] | None) -> Row:
    """An item as a row; `labels` are those that stand beside their votes, None where the heading has them."""
    item = row["item"]
    if isinstance(item, tuple):
        item = " ".join("–" if vote is None else str(vote) for vote in item)
        item = f"{item[:MOST_SPELLED]}…" if len(item) > MOST_SPELLED else item
    return {
        "item": str(item),
        "counted": rounded(row["items"]),
        "votes": _ballots(row["votes"], labels),
        "majority": "tie"
        if row["majority"] is None
        else short(str(row["majority"]), MOST_OF_A_LABEL),
        "label": short(str(row["label"]), MOST_OF_A_LABEL),
        "certainty": certain(row["certainty"]),
    }


def _ballots(votes: Sequence[int], labels: Sequence[str] | None) -> str:
    """``5 : 5``, or ``cat ×3, dog ×2``: the most frequent first."""
    if labels is None:
        return " : ".join(map(str, votes))
    given = [place for place in range(len(votes)) if votes[place]]
    given.sort(key=lambda place: -votes[place])
    words = ", ".join(f"{labels[place]} ×{votes[place]}" for place in given[:MOST_BALLOTS])
    return f"{words}, …" if len(given) > MOST_BALLOTS else words


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
