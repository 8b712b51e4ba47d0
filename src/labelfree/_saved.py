"""What was found <-> plain numbers, lists and names that JSON can hold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import Choice
from labelfree._consensus import Rule, Together
from labelfree._dependence import Alarm
from labelfree._errors import FileError
from labelfree._files import write_whole
from labelfree._intervals import Spread
from labelfree._latent_class import Model

Array = NDArray[np.float64]

FORMAT = "labelfree.estimate"
VERSION = 1
MOST_KEPT_COVARIANCE = 401  # rows; a larger covariance is not saved


def plain_choice(choice: Choice) -> dict[str, Any]:
    """Write a choice as plain values."""
    spread = choice.spread
    return {
        "dependence": choice.dependence,
        "class_probabilities": choice.model.class_probabilities.tolist(),
        "confusion": choice.model.confusion.tolist(),
        "spread": None
        if spread is None
        else {
            "centre": {name: value.tolist() for name, value in spread.centre.items()},
            "error": {name: value.tolist() for name, value in spread.error.items()},
            "plain": spread.plain,
        },
        "rule": {
            "intercept": choice.rule.intercept.tolist(),
            "weights": choice.rule.weights.tolist(),
            "limits": None if choice.rule.limits is None else list(choice.rule.limits),
            "together": [
                {"members": list(group.members), "table": group.table.tolist()}
                for group in choice.rule.together
            ],
        },
        "effective_number": choice.effective_number,
        "groups": [list(group) for group in choice.groups],
        "converged": choice.converged,
        "slope": choice.slope,
        "gold": choice.gold,
        "curve": None if choice.curve is None else [part.tolist() for part in choice.curve],
        "doubt": _plain_doubt(choice.doubt),
        "residuals": None if choice.residuals is None else choice.residuals.tolist(),
    }


def revived_choice(kept: dict[str, Any]) -> Choice:
    """Read what :func:`plain_choice` wrote."""
    spread, rule = kept["spread"], kept["rule"]
    curve = None if kept["curve"] is None else [_array(part) for part in kept["curve"]]
    return Choice(
        kept["dependence"],
        Model(_array(kept["class_probabilities"]), _array(kept["confusion"])),
        None
        if spread is None
        else Spread(
            {name: _array(value) for name, value in spread["centre"].items()},
            {name: _array(value) for name, value in spread["error"].items()},
            spread["plain"],
        ),
        Rule(
            _array(rule["intercept"]),
            _array(rule["weights"]),
            None if rule["limits"] is None else (rule["limits"][0], rule["limits"][1]),
            tuple(
                Together(tuple(group["members"]), _array(group["table"]))
                for group in rule["together"]
            ),
        ),
        float(kept["effective_number"]),
        tuple(tuple(group) for group in kept["groups"]),
        kept["converged"],
        float(kept["slope"]),
        None if curve is None else (curve[0], curve[1], curve[2]),
        kept["gold"],
        optional_array(kept["doubt"]),
        optional_array(kept.get("residuals")),
    )


def plain_alarm(found: Alarm) -> dict[str, Any]:
    """Write the alarm as plain values."""
    return {
        "testable": found.testable,
        "raised": found.raised,
        "p_value": found.p_value,
        "pair": list(found.pair),
        "residuals": found.residuals.tolist(),
        "joint": found.joint,
        "joint_freedom": found.joint_freedom,
        "joint_p_value": found.joint_p_value,
    }


def revived_alarm(kept: dict[str, Any]) -> Alarm:
    """Read what :func:`plain_alarm` wrote."""
    return Alarm(
        kept["testable"],
        kept["p_value"],
        _array(kept["residuals"]),
        (kept["pair"][0], kept["pair"][1]),
        kept["joint"],
        kept["joint_freedom"],
        kept["joint_p_value"],
    )


def _plain_doubt(covariance: Array | None) -> list[list[float]] | None:
    """Write the covariance of the terms of the log-odds, unless it is very large."""
    return (
        None
        if covariance is None or len(covariance) > MOST_KEPT_COVARIANCE
        else covariance.tolist()
    )


def optional_array(kept: Any) -> Array | None:
    """Read an array that may be missing."""
    return None if kept is None else _array(kept)


def _array(kept: Any) -> Array:
    array = np.array(kept, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("a number that is not finite")
    return array


def write_json(path: str | os.PathLike[str], kept: dict[str, Any]) -> None:
    """Write plain values as a JSON file, all of it or nothing."""
    try:
        text = json.dumps(kept, indent=1, allow_nan=False)
    except TypeError as error:
        raise FileError(
            f"The estimate cannot be written as JSON: {error}; use labels that are text or numbers."
        ) from None
    write_whole(path, lambda target: _write_text(target, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file that :func:`write_json` wrote; its format and version must be known."""
    try:
        kept = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(
            f"{path} cannot be read: {error.strerror}; name a file written by Estimate.save."
        ) from None
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not JSON; expected a file written by Estimate.save.") from None
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        raise FileError(f"{path} is not an estimate; expected a file written by Estimate.save.")
    if kept.get("version") != VERSION:
        raise FileError(
            f"{path} has version {kept.get('version')} of the format; this labelfree reads version {VERSION}; estimate anew."
        )
    return kept
