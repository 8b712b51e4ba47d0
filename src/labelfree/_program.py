"""The program around the commands: what goes wrong, in one sentence, and exit codes."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from labelfree._errors import LabelfreeError, LabelfreeWarning
from labelfree._terminal import in_shell_words, printable

MISSED = 1  # what was required does not hold
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class Program(TyperGroup):
    """The commands, with every error of bad input said in one sentence on stderr, exit code 2."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except LabelfreeError as error:
            _complain(in_shell_words(str(error)))
            code = BAD_INPUT
        except MemoryError:
            _complain("The votes do not fit into memory; give fewer items at a time.")
            code = BAD_INPUT
        except OSError as error:
            _complain(
                f"The answer cannot be written: {error.strerror}; make room, or send it elsewhere."
            )
            _drop_output()
            code = BAD_INPUT
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:
            if not hasattr(error, "format_message"):  # Typer's own errors of usage have it
                raise
            _complain(_usage_sentence(error))
            code = BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        with _warnings_as_lines():
            answer = super().invoke(ctx)
            sys.stdout.flush()  # a reader that has gone shows here, where it can still be handled
            return answer


def _usage_sentence(error: Any) -> str:
    sentence = error.format_message()
    if sentence and sentence[-1] not in ".?!":
        sentence += "."
    context = getattr(error, "ctx", None)
    return f"{sentence} See '{context.command_path} --help'." if context and sentence else sentence


def _drop_output() -> None:
    """Send what is left nowhere, so that the interpreter does not fail on it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str) -> None:
    if sentence:
        typer.echo(f"labelfree: {printable(sentence)}", err=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    said = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", LabelfreeWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, LabelfreeWarning):
                usual(message, category, *where, **more)
            elif str(message) not in said:
                said.add(str(message))
                _complain(f"warning: {in_shell_words(str(message))}")

        warnings.showwarning = show
        yield


def import_ahead() -> None:
    """Import SciPy's optimisers beside the reading of votes: it takes as long as a good part of a short run."""
    from importlib import import_module
    from threading import Thread

    Thread(target=import_module, args=("scipy.optimize",)).start()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that work goes on, and for how long; say nothing into pipes and files."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from labelfree._large_files import watching

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[read]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(printable(what), total=None, read="")

        def tell(rows: int, of: int) -> None:
            shown.update(task, completed=rows, total=of, read=f"{min(rows, of):,} rows")

        with watching(tell):
            yield


def print_json(answer: dict[str, Any]) -> None:
    """Print an answer for machines: JSON and nothing else."""
    typer.echo(json.dumps(answer, indent=1, allow_nan=False))
