"""Estimate -> one self-contained HTML page: verdict, tables, charts, no network (extra: report).

``_page`` gathers what is said (``_items`` of the consensus, ``_classes`` of more than two classes),
``_figures`` draws the charts, ``page.html.jinja`` lays it out, and ``page.css`` and ``page.js`` are
written into it. Names and labels reach the page through Jinja2's autoescape or as charts' text; the
page lets no script run but its own.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from labelfree._errors import FileError, LabelfreeError
from labelfree._files import write_whole
from labelfree._movement import Movement
from labelfree._style import altair_or_reason
from labelfree._view import Graded
from labelfree.report._page import page_of

__all__ = ["check_page", "html_of", "write_report"]


def write_report(
    estimate: Graded, path: str | os.PathLike[str], movement: Movement | None = None
) -> None:
    """Write the page, all of it or nothing.

    Parameters
    ----------
    estimate : Estimate
    path : str or path
    movement : Movement, optional
        How the consensus moves against the majority vote; without it the page says how to get it.
    """
    check_page(path)
    text = html_of(estimate, movement)

    def write(target: Path) -> None:
        target.write_text(text, encoding="utf-8")

    write_whole(path, write)


def check_page(path: str | os.PathLike[str]) -> None:
    """Say what stands in the way of a page before long work begins: its name, or a missing package."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise FileError(f"{path}: a report is an HTML page; choose a name that ends in .html.")
    altair_or_reason()


def html_of(estimate: Graded, movement: Movement | None = None) -> str:
    """Make the page; the same estimate and votes make the same page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise LabelfreeError(
            "Charts and reports need jinja2, which is not installed; install labelfree[report]."
        ) from None
    environment = Environment(
        loader=PackageLoader("labelfree", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    folder = files("labelfree.report")
    script = folder.joinpath("page.js").read_text("utf-8")
    return environment.get_template("page.html.jinja").render(
        page=page_of(estimate, movement),
        style=folder.joinpath("page.css").read_text("utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _breakable(name: object) -> Any:
    """Let a long name break after its signs, rather than anywhere."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.findall(r"[^_/.:-]+[_/.:-]*|[_/.:-]+", str(name)))
