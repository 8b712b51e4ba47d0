"""What can go wrong, as a tree.

LabelfreeError (ValueError)     the root: catch this one to catch them all
├── VotesError                  the votes are not votes: labels, shapes, columns
├── OptionsError                an option is outside what it may be, or does not fit the votes
├── FileError                   a file cannot be read or written as asked
└── NotIdentifiedError          the votes hold no signal to answer the question with

LabelfreeWarning (UserWarning)  the answer stands, but something in the input deserves a look
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable


class LabelfreeError(ValueError):
    """Root of every error that labelfree raises on purpose."""


class VotesError(LabelfreeError):
    """The votes given cannot be read as votes."""


class OptionsError(LabelfreeError):
    """An option is outside its range or does not fit the votes."""


class FileError(LabelfreeError):
    """A file cannot be read, or written, as asked."""


class NotIdentifiedError(LabelfreeError):
    """The votes hold no signal from which the asked quantity could be estimated."""


class LabelfreeWarning(UserWarning):
    """The answer stands, but something in the input deserves a look."""


def listed(things: Iterable[object], most: int = 5) -> str:
    """Write a few things for an error sentence: ``no, unsure, yes``; long lists end in a count."""
    words = [" ".join(str(thing).split()) or repr(thing) for thing in things]
    shown = ", ".join(word if len(word) <= 40 else word[:37] + "..." for word in words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def counted(number: int, noun: str) -> str:
    """Write a count with its noun: ``1 item``, ``3 items``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def warn(message: str) -> None:
    """Warn of something in the input, at the line outside this package that gave it."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("labelfree."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, LabelfreeWarning, stacklevel=depth)
