"""Labels: what may be one, of which kind it is, and which stands for which class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import OptionsError, VotesError, listed, warn

Label = Any  # whatever the user calls a class: text, a number, a truth value, bytes

MOST_LABELS = 100  # that are taken for classes; whatever holds more was never a column of votes
MOST_CLASSES = 127  # class code + 1 fits a signed byte
MANY = 10  # labels, from which on a column looks like something else than votes
# What is written where there is no vote, without case and with single spaces.
# fmt: off
NO_VOTE = frozenset((
    "", "-", "--", "?", "??",
    "abstain", "abstained", "can't say", "can't tell", "cannot say", "cannot tell",
    "don't know", "dont know", "idk", "missing", "n/a", "na", "nan", "n.a.", "nil",
    "no answer", "no vote", "none", "not sure", "null", "skip",
    "skipped", "unanswered", "undecided", "unknown", "unsure",
))
# fmt: on


def plain(label: Any) -> Any:
    """Turn a NumPy scalar into Python's own."""
    if isinstance(label, np.generic):
        label = label.item()
    return float(label) if isinstance(label, np.floating) else label  # a long double stays NumPy's


def is_label(label: Any) -> bool:
    """Tell whether something can be a label."""
    return isinstance(label, str | bytes | int | float | Decimal)


def is_gap(label: Any) -> bool:
    """Tell whether something means a missing vote in every language of tables."""
    if label is None:
        return True
    equal = label == label  # noqa: PLR0124 (NaN and NaT are not; pandas' NA does not even say)
    return not equal if isinstance(equal, bool | np.bool_) else isinstance(label, Hashable)


def kind_of(labels: Iterable[Label]) -> str | None:
    """Tell "truth", "number", "text" or "bytes"; "" of no labels, None of a mixture."""
    return joint({kind_of_one(label) for label in labels})


def kind_of_one(label: Label) -> str:
    """Tell "truth", "number", "text" or "bytes"."""
    if isinstance(label, str | bytes):
        return "text" if isinstance(label, str) else "bytes"
    return "truth" if isinstance(label, bool) else "number"


def joint(kinds: Iterable[str]) -> str | None:
    """Join kinds into one; "" of none, None where they do not go together."""
    kinds = set(kinds) - {""}
    if kinds == {"truth", "number"}:
        return "number"  # True is 1 here as everywhere in Python
    return max(kinds, default="") if len(kinds) < 2 else None


def fitted(label: Label, kind: str | None) -> Label:
    """Take a label for the one of that kind that is written alike, where there is one."""
    if isinstance(label, str) and kind in {"number", "truth"}:
        return _read(label, kind)
    return str(label) if isinstance(label, int | float) and kind == "text" else label


def fitted_all(labels: Iterable[Label], kind: str | None) -> tuple[Label, ...]:
    """Fit labels to a kind, and drop those that have become equal."""
    return tuple(dict.fromkeys(fitted(label, kind) for label in labels))


def _read(text: str, kind: str) -> Label:
    """Read text as a number or a truth value; what cannot be read stays text."""
    if kind == "truth" and text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        return float(text) if isfinite(float(text)) else text
    return text


# --- classes ------------------------------------------------------------------------------------


def missing_labels(missing: Any) -> tuple[Label, ...]:
    """Read the option missing=: one label or several; None and NaN always mean a missing vote."""
    several = isinstance(missing, Iterable) and not isinstance(missing, str | bytes)
    labels = [plain(label) for label in (missing if several else (missing,))]
    labels = [label for label in labels if not is_gap(label)]
    for label in labels:
        if not is_label(label) or label in (np.inf, -np.inf):
            raise OptionsError(
                f"missing= must name labels: text, finite numbers or truth values; got {listed([repr(label)])}. Leave it out."
            )
    return tuple(dict.fromkeys(labels))


def asked_classes(classes: Any) -> tuple[Label, ...]:
    """Read the option classes=."""
    if not isinstance(classes, Iterable) or isinstance(classes, str | bytes | Set | Mapping):
        raise OptionsError(
            f"classes= must list the labels in order, got {listed([repr(classes)])}; give a tuple."
        )
    asked = tuple(map(plain, classes))
    for label in asked:
        if is_gap(label) or not is_label(label) or label in (np.inf, -np.inf):
            raise OptionsError(
                f"classes= must name labels: text, finite numbers or truth values; got {listed([repr(label)])}. Leave it out."
            )
    if not 2 <= len(set(asked)) == len(asked) <= MOST_CLASSES:
        raise OptionsError(
            f"classes= must name 2 to {MOST_CLASSES} different labels, got {listed(map(repr, asked)) or 'none'}; name each once."
        )
    return asked


def ordered_classes(
    found: Sequence[Label],
    asked: tuple[Label, ...] | None,
    kind: str | None,
    positive: Label,
    absent: tuple[Label, ...],
    *,
    part: bool = False,
) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """Put the classes in order; of two, the positive one last.

    Parameters
    ----------
    found : sequence of labels
        Those in the votes, which decide where no classes were asked for.
    asked : tuple of labels, optional
    kind : str
        Of the votes.
    positive : label, optional
    absent : tuple of labels
        What means a missing vote.
    part : bool
        Whether the votes are a part of all, in which fewer than two labels may occur.

    Returns
    -------
    classes : tuple of labels
        As they were asked for, or those found in sorted order; of two, the positive one last.
    values : tuple of labels
        What stands for each in the votes.
    """
    if asked is None:
        _refuse_infinity(found, None)
        if len(found) < 2 and not part:
            what = f"only {found[0]!r}" if found else "no vote at all"
            raise VotesError(
                f"Expected votes with two labels or more, got {what}; if another label just never occurs, name all with classes=."
            )
        classes = values = tuple(sorted(found))
    else:
        classes, values = asked, tuple(fitted(label, kind) for label in asked)
        both = [label for label in values if label in absent]
        if both or len(set(values)) < len(values):
            raise OptionsError(
                f"classes= must name different labels, none of them missing=, got {listed(map(repr, asked))}"
                f"{f' with missing={both[0]!r}' if both else ''}; name each once."
            )
    if positive is None:
        return classes, values
    value = fitted(plain(positive), kind)
    if not is_label(value) or value not in values:
        raise OptionsError(
            f"positive= must be one of the labels {listed(map(repr, classes))}, got {listed([repr(positive)])}; name one of them."
        )
    if len(classes) > 2:
        raise OptionsError(
            f"positive= is for two labels, but classes= names {len(classes)}; leave positive= out, or name two."
        )
    last = values.index(value)
    order = [*(place for place in range(len(values)) if place != last), last]
    return tuple(classes[place] for place in order), tuple(values[place] for place in order)


def label_array(classes: Sequence[Label], own: np.dtype[Any] | None) -> NDArray[Any]:
    """Lay the classes out as an array: of the type `own` where that holds them, else of their own."""
    if own is not None:
        try:
            with np.errstate(all="ignore"):
                array = np.array(classes, dtype=object).astype(own)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            if array.tolist() == list(classes):
                return array
    array = np.array(classes)
    kept = array.dtype.kind in "biuf" and array.tolist() == list(classes)
    return array if kept else np.array(classes, dtype=object)


# --- what deserves a look -----------------------------------------------------------------------


def look_at_labels(classes: Sequence[Label]) -> None:
    """Warn of labels that were found, not named, and that may be no class, or the same one twice."""
    odd = _like_no_vote(classes)
    if odd:
        warn(
            f"{listed(map(repr, odd))} was taken for a class, though it often means that there is no vote; "
            f"if it does, name it with missing={odd[0]!r}, and if not, name all classes with classes=."
        )
    alike = _alike(classes)
    if alike:
        warn(
            f"The labels {listed(map(repr, alike))} differ only by case or spaces and were taken for different classes; "
            "write them alike, or name all classes with classes=."
        )


def _like_no_vote(classes: Sequence[Label]) -> list[Label]:
    words: list[Label] = [
        label for label in classes if isinstance(label, str) and _bare(label) in NO_VOTE
    ]
    negative = [label for label in classes if kind_of_one(label) == "number" and label < 0]
    if len(classes) > 2 and len(negative) == 1:
        # −1 beside 0, 1, 2 … marks a missing vote in many tools; between −1 and 1 the 0 does.
        words += [*negative, 0] if set(classes) == {-1, 0, 1} else negative
    return words


def _alike(classes: Sequence[Label]) -> list[Label]:
    """List the texts that are equal but for case and spaces."""
    texts = [label for label in classes if isinstance(label, str)]
    bare = [_bare(label) for label in texts]
    return [label for label, each in zip(texts, bare, strict=True) if bare.count(each) > 1]


def _bare(text: str) -> str:
    return " ".join(text.split()).casefold()


# --- refusals -----------------------------------------------------------------------------------


def refuse_many(labels: Sequence[Label], column: str | None) -> NoReturn:
    """Say that votes hold more labels than there may be classes."""
    _refuse_infinity(labels, column)
    raise VotesError(
        f"{_where(column)} more than {MOST_LABELS} different labels ({listed(map(repr, labels), 3)}); at most {MOST_LABELS} "
        f"were expected. If it names the items, say item={column or 'its name'!r}; if it is no classifier, leave it out."
    )


def refuse_third(names: Sequence[str | None], columns: Sequence[Sequence[Label]]) -> NoReturn:
    """Say that votes with a positive label hold more than two; `columns` are the labels of each."""
    every = dict.fromkeys(label for labels in columns for label in labels)
    spread = zip((*names, None), (*columns, tuple(every)), strict=True)
    column, labels = next(each for each in spread if len(each[1]) > 2)
    _refuse_infinity(labels, column)
    odd = _like_no_vote(labels)
    missing = f"missing={odd[0]!r}" if odd else "missing="
    raise VotesError(
        f"{_where(column)} {len(labels)} labels ({listed(map(repr, sorted(labels)))}); two were expected beside positive=. "
        f"Name the missing vote with {missing}, or estimate all {len(every)}: leave positive= out."
    )


def refuse_labels(
    labels: Sequence[Label], classes: Sequence[Label], column: str | None
) -> NoReturn:
    """Say that votes hold labels that `classes` does not."""
    _refuse_infinity(labels, column)
    others = [label for label in labels if label not in classes]
    advice = f"Name it with missing={others[0]!r} if it means no vote, or replace it."
    if len(others) > MANY and column is not None:
        advice = (
            f"If it names the items, say item={column!r}; if it is no classifier, leave it out."
        )
    raise VotesError(
        f"{_where(column)} the label {listed(map(repr, others))}; expected {listed(map(repr, classes))}. {advice}"
    )


def _refuse_infinity(labels: Sequence[Label], column: str | None) -> None:
    if any(label in (np.inf, -np.inf) for label in labels):
        raise VotesError(
            f"{_where(column)} an infinity; expected finite labels. Replace it by NaN if it means no vote."
        )


def _where(column: str | None) -> str:
    return f"Column {column!r} holds" if column is not None else "The votes hold"
