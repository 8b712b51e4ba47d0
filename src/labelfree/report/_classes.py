"""The sections that only more than two classes have: how common each is, and who takes which for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelfree._view import (
    Graded,
    Row,
    decimals,
    ends,
    is_binary,
    is_identified,
    is_rough,
    percent,
    short,
)

MOST_CELLS = 60_000  # of the confusion matrices of one page
FEWEST_MATRICES = 4
MOST_WITH_ENDS = 4  # classes of a matrix whose cells have room for their intervals
WIDEST_HEAD, WIDEST_LABEL = 10, 24  # letters


def bar_of(value: float | None, low: float | None, high: float | None) -> Row | None:
    """A rate and its interval as a bar of the page, from 0 to 100 %."""
    if value is None:
        return None
    low, high = (value if end is None else end for end in (low, high))
    return {
        "low": f"{100 * low:.1f}",
        "wide": f"{100 * (high - low):.1f}",
        "at": f"{100 * value:.1f}",
    }


def shares_section(estimate: Graded) -> list[Row] | None:
    """How common each of more than two classes is, in their order."""
    if is_binary(estimate) or not is_identified(estimate):
        return None
    rough, rows = is_rough(estimate), []
    for label, (_, row) in zip(estimate.classes, estimate.shares(), strict=True):
        low, high = row["share_low"], row["share_high"]
        places = decimals(low, high, rough=rough)
        rows.append(
            {
                "label": str(label),
                "words": percent(row["share"], places),
                "ends": ends(low, high, places),
                "bar": bar_of(row["share"], low, high),
            }
        )
    return rows


def confusion_section(estimate: Graded) -> Row | None:
    """Each classifier's confusion matrix, best first; with two classes the table of rates says it all."""
    if is_binary(estimate):
        return None
    labels = [str(label) for label in estimate.classes]
    k = len(labels)
    most = max(FEWEST_MATRICES, MOST_CELLS // k**2)
    order = np.argsort(-estimate.balanced_accuracy, kind="stable")[:most].tolist()
    low = high = np.full((1, k, k), np.nan)
    with_ends = k <= MOST_WITH_ENDS and estimate.table()[0]["balanced_accuracy_low"] is not None
    if with_ends:
        low, high = np.moveaxis(estimate.interval("confusion"), -1, 0)
    return {
        "heads": [short(label, WIDEST_HEAD) for label in labels],
        "with_ends": with_ends,
        "matrices": [
            {
                "name": estimate.classifiers[place],
                "rows": [
                    {
                        "label": short(label, WIDEST_LABEL),
                        "cells": [
                            _cell(
                                float(estimate.confusion[place, true, voted]),
                                right=true == voted,
                                reach=(low[place, true, voted], high[place, true, voted])
                                if with_ends
                                else None,
                            )
                            for voted in range(k)
                        ],
                    }
                    for true, label in enumerate(labels)
                ],
            }
            for place in order
        ],
        "left_out": len(estimate.classifiers) - len(order),
    }


def _cell(share: float, *, right: bool, reach: Any) -> Row:
    """One cell in percent; `reach` is its interval."""
    return {
        "words": f"{100 * share:.0f}",
        "shade": f"{min(share, 1.0):.2f}",
        "right": right,
        "ends": "" if reach is None else f"{100 * reach[0]:.0f}–{100 * reach[1]:.0f}",
    }
