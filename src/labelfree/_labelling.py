"""A file of votes -> a file of labels, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelfree._batches import in_batch, pieces_of
from labelfree._files import kind_of, read_frame, write_frame
from labelfree._labels import Label
from labelfree._large_files import LargeFile, Named, is_large, with_types, write_pieces

if TYPE_CHECKING:
    import polars as pl


@dataclass
class Labelled:
    """What was written.

    Attributes
    ----------
    items : int
    labels : dict
        How many items each label was given.
    unvoted : int
        Items without any vote.
    """

    items: int = 0
    labels: dict[Label, int] = field(default_factory=dict)
    unvoted: int = 0

    @classmethod
    def of(cls, answers: pl.DataFrame, unvoted: int) -> Labelled:
        """Count items."""
        done = cls()
        done.add(answers, unvoted)
        return done

    def add(self, answers: pl.DataFrame, unvoted: int) -> None:
        """Count some more items."""
        self.items += answers.height
        self.unvoted += unvoted
        for label, times in answers["label"].value_counts().iter_rows():
            self.labels[label] = self.labels.get(label, 0) + times


def label_file(
    votes: Named,
    output: Named,
    work: Callable[[pl.DataFrame], tuple[pl.DataFrame, int]],
    reading: Mapping[str, Any],
) -> Labelled:
    """Do `work` on a file's votes and write what it returns: all of it or nothing.

    Parameters
    ----------
    votes, output : str or path
    work : callable
        Votes -> the same with labels, and the number of items without any vote.
    reading : mapping
        Options by which the votes are read; of the long form all votes on an item stand together.

    Returns
    -------
    Labelled
    """
    kind_of(Path(output))  # before the work

    def write(pieces: Iterator[tuple[str, pl.DataFrame]]) -> Labelled:
        done = Labelled()

        def answers() -> Iterator[pl.DataFrame]:
            for place, piece in pieces:
                with in_batch(place):
                    labelled, unvoted = work(piece)
                done.add(labelled, unvoted)
                yield labelled

        write_pieces(answers(), output)
        return done

    def in_pieces(file: LargeFile) -> Labelled:
        if reading.get("classifier") is None:
            return write(file.pieces())
        return write((place, piece) for place, piece, _ in pieces_of(file, reading))

    if is_large(votes):
        return with_types(votes, in_pieces)
    labelled, unvoted = work(read_frame(votes))
    write_frame(labelled, output)
    return Labelled.of(labelled, unvoted)
