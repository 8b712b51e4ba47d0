"""What the page says, section by section: an estimate -> plain values that the template lays out."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from labelfree import charts
from labelfree._choice import DIFFICULTY, GROUPS
from labelfree._errors import counted
from labelfree._movement import Movement
from labelfree._style import MOST_CROSSES
from labelfree._view import (
    Graded,
    Row,
    decimals,
    ends,
    is_binary,
    is_identified,
    is_rough,
    likelihood_rows,
    pairs_of,
    percent,
    prevalence_row,
    rate_rows,
    rounded,
    signed,
    with_ends,
)
from labelfree.report._classes import bar_of, confusion_section, shares_section
from labelfree.report._figures import NAMED, drawn
from labelfree.report._items import consensus_section

VERDICTS = {
    "sound": ("Sound", "These grades can be used, with their intervals."),
    "caution": (
        "Caution",
        "There are grades, and a reason to doubt them: read it before the numbers.",
    ),
    "unidentified": (
        "Unidentified",
        "These votes cannot tell good classifiers from bad ones, so there are no grades.",
    ),
}
MODELS = {
    "independent": "classifiers that err independently given the true class",
    GROUPS: "groups of classifiers that copy one another",
    DIFFICULTY: "classifiers that err together on hard items; rates toned down for it",
}
SHOWN_FIRST = 50  # rows of a long table
ASSUMED = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MOST_ASSUMED = 25  # rows of the table by assumed prevalence


def page_of(estimate: Graded, movement: Movement | None) -> dict[str, Any]:
    """Gather everything that the page says.

    Parameters
    ----------
    estimate : Estimate
    movement : Movement or None

    Returns
    -------
    dict
        Plain values by section; a section that does not apply is None.
    """
    word, sentence = VERDICTS[estimate.verdict.level]
    m = len(estimate.classifiers)
    sections: dict[str, Callable[[], Any]] = {
        "rates": lambda: _rates(estimate),
        "imbalance": lambda: _imbalance(estimate),
        "pairs": lambda: _pairs(estimate),
        "by_prevalence": lambda: _by_prevalence(estimate),
        "consensus": lambda: consensus_section(estimate, movement),
        "shares": lambda: shares_section(estimate),
        "confusion": lambda: confusion_section(estimate),
    }
    known = is_identified(estimate)
    return {
        "title": f"{counted(m, 'classifier')}{' graded without labels' if known else ', not graded'}",
        "counted": rounded(estimate.items),
        "classifiers": m,
        "level": f"{100 * estimate.level:g} %",
        "classes": [str(label) for label in estimate.classes],
        "verdict": {
            "level": estimate.verdict.level,
            "word": word,
            "sentence": sentence,
            "reasons": estimate.verdict.reasons,
            "advice": estimate.verdict.advice,
        },
        "tiles": _tiles(estimate),
        "table": _table(estimate),
        **{name: section() if known else None for name, section in sections.items()},
        "method": _method(estimate),
        "colours": NAMED,
        "rough": is_rough(estimate),
        "binary": is_binary(estimate),
        "version": version("labelfree"),
    }


# --- sections -----------------------------------------------------------------------------------


def _tiles(estimate: Graded) -> list[Row]:
    """The figures of the whole that stand at the top."""
    m = len(estimate.classifiers)
    tiles: list[Row] = []
    if not is_identified(estimate):
        return tiles
    row = prevalence_row(estimate)
    if row is not None:
        places = decimals(row["prevalence_low"], row["prevalence_high"], rough=is_rough(estimate))
        tiles.append(
            {
                "name": "Prevalence",
                "value": percent(row["prevalence"], places),
                "small": ends(row["prevalence_low"], row["prevalence_high"], places),
                "words": f"of the items are {estimate.classes[-1]}",
                "bar": _bar(row, "prevalence"),
            }
        )
    tiles.append(
        {
            "name": "Effective number",
            "value": _effective(estimate),
            "small": f"of {m:,}",
            "words": "independent classifiers would tell as much",
            "bar": None,
        }
    )
    best = max(estimate.table(), key=lambda each: each["balanced_accuracy"] or 0.0)
    reach = best["balanced_accuracy_low"], best["balanced_accuracy_high"]
    places = decimals(*reach, rough=is_rough(estimate))
    tiles.append(
        {
            "name": "Best classifier",
            "value": percent(best["balanced_accuracy"], places),
            "small": ends(*reach, places),
            "words": f"balanced accuracy of {best['classifier']}",
            "bar": _bar(best, "balanced_accuracy"),
        }
    )
    return tiles


def _effective(estimate: Graded) -> str:
    number = estimate.effective_number
    return f"{number:,.1f}" if number < 100 else f"{number:,.0f}"


def _bar(row: Row, name: str) -> Row | None:
    return bar_of(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))


def _table(estimate: Graded) -> Row:
    """Classifiers with their rates, best first; as they stand where there are no grades."""
    rough = is_rough(estimate)
    rows = estimate.table()
    rates = list(estimate.rates) if is_identified(estimate) else []
    if rates:
        rows = sorted(rows, key=lambda row: -(row[rates[-1]] or 0.0))
    group_of = (
        {name: place for place, group in enumerate(estimate.groups, 1) for name in group}
        if is_identified(estimate)
        else {}
    )
    shown = []
    for row in rows:
        cells = []
        for rate in rates:
            low, high = row.get(f"{rate}_low"), row.get(f"{rate}_high")
            places = decimals(low, high, rough=rough)
            cells.append(
                {
                    "value": row[rate],
                    "words": percent(row[rate], places),
                    "ends": ends(low, high, places),
                    "bar": _bar(row, rate),
                }
            )
        group = group_of.get(row["classifier"])
        group_words = "" if group is None else f"group {group}"
        shown.append(
            {
                "name": row["classifier"],
                "votes": row["votes"],
                "votes_words": rounded(row["votes"]),
                "cells": cells,
                "group": group_words,
                "note": row["note"],
                "more": ", ".join(filter(None, (group_words, row["note"]))),
            }
        )
    return {
        "heads": [rate.replace("_", " ") for rate in rates],
        "rows": shown,
        "grouped": bool(group_of),
        "noted": any(row["note"] for row in rows),
        "first": SHOWN_FIRST,
    }


def _rates(estimate: Graded) -> Row:
    rows = rate_rows(estimate) if is_binary(estimate) else []
    alt = _alt_by_class(estimate)
    if rows:
        best, worst = rows[0], rows[-1]
        alt = (
            f"Chart of sensitivity against specificity of {counted(len(rows), 'classifier')}. "
            f"Highest balanced accuracy: {best['said']}. Lowest: {worst['said']}."
        )
    return {
        "svg": drawn(charts.rates, estimate, "rates"),
        "alt": alt,
        "points": len(estimate.classifiers) <= MOST_CROSSES,
        "crosses": len(rows) <= MOST_CROSSES
        and bool(rows)
        and rows[0]["sensitivity_low"] is not None,
    }


def _alt_by_class(estimate: Graded) -> str:
    medians = np.median(np.einsum("ikk->ik", estimate.confusion), axis=0)
    told = ", ".join(
        f"{label} {percent(float(median))}"
        for label, median in zip(estimate.classes, medians, strict=True)
    )
    return f"Chart of the share of each class that each classifier calls right. The middle classifier: {told}."


def _imbalance(estimate: Graded) -> Row | None:
    rows, chosen = likelihood_rows(estimate), prevalence_row(estimate)
    if not rows or chosen is None:
        return None
    best = max(rows, key=lambda row: row["log_likelihood"])
    said = with_ends(chosen, "prevalence")
    return {
        "svg": drawn(charts.imbalance, estimate, "imbalance"),
        "alt": f"Chart of the log-likelihood of the votes over the imbalance. It is highest near a prevalence of "
        f"{percent(best['prevalence'])}; the estimate is {said}.",
        "peak": percent(best["prevalence"]),
        "chosen": said,
        "points": [
            {
                "imbalance": f"{row['imbalance']:+.2f}",
                "prevalence": percent(row["prevalence"]),
                "value": f"{row['log_likelihood']:.3f}",
            }
            for row in rows[::8]
        ],
    }


def _pairs(estimate: Graded) -> Row | None:
    found = pairs_of(estimate)
    if found is None:
        return None
    one, other, largest = found.strongest[0]
    return {
        "svg": drawn(charts.pairs, estimate, "pairs"),
        "alt": f"Map of pairs of classifiers. The pair with the largest residual is {one} and {other}: {signed(largest)}.",
        "raised": estimate.alarm.raised,
        "bound": f"{found.bound:.1f}",
        "shown": len(found.names),
        "total": found.total,
        "groups": estimate.groups,
        "strongest": [
            {
                "one": one,
                "other": other,
                "residual": signed(residual),
                "beyond": abs(residual) > found.bound,
            }
            for one, other, residual in found.strongest
        ],
        "effective": _effective(estimate),
        "model": MODELS.get(estimate.dependence, estimate.dependence),
    }


def _by_prevalence(estimate: Graded) -> Row | None:
    """Rates by assumed prevalence, where the alarm is up: then votes do not vouch for the prevalence."""
    if not is_binary(estimate) or not estimate.alarm.raised:
        return None
    cells: dict[str, dict[float, str]] = {}
    for row in estimate.by_prevalence():
        both = f"{100 * row['sensitivity']:.0f} / {100 * row['specificity']:.0f}"
        cells.setdefault(row["classifier"], {})[row["prevalence"]] = both
    order = [row["classifier"] for row in _best_first(estimate)][:MOST_ASSUMED]
    return {
        "svg": drawn(charts.by_prevalence, estimate, "by-prevalence"),
        "alt": f"Chart of every classifier's sensitivity and specificity over the assumed prevalence; the estimate is "
        f"{percent(estimate.prevalence)}. A higher assumed prevalence means lower sensitivities and higher specificities.",
        "many": len(estimate.classifiers) > charts.MOST_LINES,
        "assumed": [percent(each) for each in ASSUMED],
        "rows": [
            {"name": name, "cells": [cells[name].get(each, "–") for each in ASSUMED]}
            for name in order
        ],
        "left_out": len(estimate.classifiers) - len(order),
    }


def _best_first(estimate: Graded) -> list[Row]:
    return sorted(estimate.table(), key=lambda row: -row["balanced_accuracy"])


def _method(estimate: Graded) -> list[tuple[str, str]]:
    """How it was computed, as pairs of a name and words."""
    known, origin = is_identified(estimate), estimate.origin
    votes = sum(row["votes"] for row in estimate.table())
    said = [("Method", estimate.method)]
    if known:
        said.append(("Model", MODELS.get(estimate.dependence, estimate.dependence)))
        said.append(("Search", "settled" if estimate.converged else "did not settle"))
        said.append(
            ("Intervals", f"{100 * estimate.level:g} %, of sampling error under that model")
        )
    said.append(
        (
            "Votes",
            f"{rounded(votes)} on {rounded(estimate.items)} items, {rounded(estimate.patterns)} distinct patterns",
        )
    )
    classes = ", ".join(str(label) for label in estimate.classes)
    said.append(
        (
            "Classes",
            f"{classes}; {estimate.classes[-1]} is positive" if is_binary(estimate) else classes,
        )
    )
    if origin is not None:
        given = {**estimate.reading, **origin.options}
        words = "".join(
            f", {name}={value!r}"
            for name, value in given.items()
            if value not in (None, [], (), "", False)
        )
        said.append(("Call", f"labelfree.estimate(votes{words})"))
        said.append(("Hash of the votes", origin.tally_hash))
        said.append(("Computed by", f"labelfree {origin.version}"))
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "altair"))
    own = f"labelfree {version('labelfree')}, Python {platform.python_version()}, {packages}"
    said.append(("Page made by", own))
    return said
