"""A tally <-> one file: a zip of plain arrays and a page of JSON, with a version and a hash; no pickle.

The arrays are NumPy's own format, so that other programs can read them; the JSON names the
classifiers and classes. Reading checks all of it: a file that was cut short, written by a later
version or changed is refused, never half read.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelfree._counting import Counts
from labelfree._errors import FileError
from labelfree._files import write_whole
from labelfree._labels import Label, asked_classes
from labelfree._patterns import Shape, Words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SUFFIX = ".tally"
FORMAT = "labelfree.tally"
VERSION = 1
ZIP = b"PK\x03\x04"  # the first bytes of a zip
DENSE, SPARSE = ("patterns", "counts"), ("data", "indices", "indptr", "counts")

Content = tuple[tuple[str, ...], tuple[Label, ...], "Words | csr_array", Counts]
Arrays = dict[str, NDArray[Any]]


def is_tally_file(path: Any) -> bool:
    """Tell by the ending whether something is the path of a tally."""
    return isinstance(path, str | os.PathLike) and str(path).endswith(SUFFIX)


def check_name(path: Path) -> None:
    """Refuse a name by which the file would not be known for a tally."""
    if not is_tally_file(path):
        raise FileError(f"{path}: expected a name that ends in {SUFFIX}; rename the file.")


def write_tally(path: str | os.PathLike[str], content: Content) -> None:
    """Write a tally, all of it or nothing; the same tally gives the same bytes."""
    classifiers, classes, patterns, counts = content
    arrays: Arrays
    if isinstance(patterns, np.ndarray):
        arrays = {"patterns": patterns.astype("<u8")}
    else:
        arrays = {
            "data": patterns.data.astype("i1"),
            "indices": patterns.indices.astype("<i4"),
            "indptr": patterns.indptr.astype("<i8"),
        }
    whole = bool((counts == np.rint(counts)).all() and counts.max() < 2**53)
    arrays["counts"] = counts.astype("<i8" if whole else "<f8")
    page = {
        "format": FORMAT,
        "version": VERSION,
        "classifiers": list(classifiers),
        "classes": [_plain(label) for label in classes],
    }
    try:
        text = json.dumps(page, allow_nan=False).encode()
    except TypeError:
        raise FileError(
            f"{path} cannot be written: a tally file holds labels that are text, numbers, truth values or bytes; relabel the votes."
        ) from None
    arrays["page"] = np.frombuffer(text, dtype=np.uint8)
    arrays["hash"] = np.frombuffer(_hash(arrays), dtype=np.uint8)

    def write(target: Path) -> None:
        with target.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    write_whole(path, write)


def read_tally(path: str | os.PathLike[str]) -> Content:
    """Read what :func:`write_tally` wrote."""
    arrays = _read(Path(path))
    page = _page(arrays)
    if page is None:
        raise _stranger(path)
    if page.get("version") != VERSION:
        raise FileError(
            f"{path} has version {page.get('version')} of the format; this labelfree reads version {VERSION}. Count the votes anew."
        )
    if arrays.pop("hash", np.empty(0)).tobytes() != _hash(arrays):
        raise _damaged(path)
    try:
        return _content(page, arrays)
    except (KeyError, TypeError, ValueError, IndexError):
        raise _damaged(path) from None


def _read(path: Path) -> Arrays:
    """Read all arrays of the zip; each has a checksum of its own there."""
    try:
        with path.open("rb") as opened:
            start = opened.read(len(ZIP))
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file; name a tally.") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}; name a tally.") from None
    if start != ZIP:
        raise _stranger(path)
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, EOFError, ValueError, KeyError, NotImplementedError, OSError):
        raise _damaged(path) from None


def _page(arrays: Arrays) -> dict[str, Any] | None:
    """Read the page that says what this is; None where it is something else."""
    try:
        page = json.loads(arrays["page"].tobytes())
    except (KeyError, ValueError):
        return None
    return page if isinstance(page, dict) and page.get("format") == FORMAT else None


def _content(page: dict[str, Any], arrays: Arrays) -> Content:
    """Check that everything fits together, as what follows trusts it."""
    names, classes = page["classifiers"], asked_classes(map(_revived, page["classes"]))
    counts = arrays["counts"].astype(np.float64)
    shape = Shape(len(names), len(classes))
    good = all(isinstance(name, str) for name in names) and len(set(names)) == len(names) > 0
    good = good and counts.ndim == 1 and len(counts) > 0
    good = good and bool(np.isfinite(counts).all() and (counts > 0).all())
    patterns: Words | csr_array
    if "patterns" in arrays:
        patterns = arrays["patterns"].astype(np.uint64)
        good = good and patterns.shape == (len(counts), shape.planes * shape.words)
    else:
        from scipy.sparse import csr_array

        parts = (arrays["data"], arrays["indices"].astype(np.int32), arrays["indptr"])
        patterns = csr_array(parts, shape=(len(counts), len(names)))
        patterns.check_format()
        codes = parts[0]
        good = good and (not len(codes) or bool(codes.min() >= 1 and codes.max() <= len(classes)))
    if not good:
        raise ValueError("counts")
    return tuple(names), classes, patterns, counts


def _hash(arrays: Arrays) -> bytes:
    """Hash every array with its name, type and shape."""
    found = hashlib.sha256()
    for name in (*DENSE, *SPARSE[:-1], "page"):
        if name in arrays:
            array = np.ascontiguousarray(arrays[name])
            found.update(f"{name} {array.dtype.str} {array.shape};".encode())
            found.update(array.data)
    return found.digest()


def _plain(label: Label) -> Any:
    """Write a label as JSON; bytes and decimals say what they are."""
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    return {"decimal": str(label)} if isinstance(label, Decimal) else label


def _revived(kept: Any) -> Label:
    if isinstance(kept, dict):
        ((kind, value),) = kept.items()
        return bytes.fromhex(value) if kind == "bytes" else Decimal(value)
    return kept


def _stranger(path: str | os.PathLike[str]) -> FileError:
    return FileError(f"{path} is not a tally; expected a file written by Tally.save.")


def _damaged(path: str | os.PathLike[str]) -> FileError:
    return FileError(
        f"{path} is damaged or cut short; expected a whole tally. Copy the file again, or count the votes anew."
    )
