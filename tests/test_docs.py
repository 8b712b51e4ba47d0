"""The documentation runs: every block of Python and shell, and every option that it names."""

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import labelfree
from labelfree import _cli, _many_verdict, _terminal, _verdict

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Blocks that a test cannot run, by the page and their first line, with the reason.
NOT_RUN = {
    ("README.md", "$ make demo"): "sets up an environment; the CI run calls it",
    ("README.md", "$ pip install ."): "installs; setting up for development does the same",
    (
        "docs/command_line.md",
        "$ labelfree --install-completion",
    ): "changes the shell's own settings",
    ("docs/paper.md", "$ make paper"): "takes half an hour; its own tests run its parts",
    ("docs/report.md", '$ pip install "labelfree[report]"'): "installs from the package index",
    ("docs/sklearn.md", '$ pip install "labelfree[sklearn]"'): "installs from the package index",
}


def blocks(page, *languages):
    return [body for language, body in FENCE.findall(page.read_text()) if language in languages]


def name(page):
    return str(page.relative_to(ROOT))


def test_every_block_is_of_a_kind_that_is_tested_or_only_shown():
    kinds = {language for page in PAGES for language, _ in FENCE.findall(page.read_text())}
    # Anything else, such as "bash" or "pycon", would slip through untested.
    assert {kind for kind in kinds if not kind.startswith("{")} <= {
        "python",
        "sh",
        "console",
        "text",
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_runs_from_its_first_block_to_its_last(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = {"__name__": page.stem}
    for language, body in FENCE.findall(page.read_text()):
        if language == "python":
            exec(compile(body, name(page), "exec"), here)  # noqa: S102 (the page is our own)
        elif language == "sh":
            run_in_shell(body, tmp_path)


def run_in_shell(script, folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_every_block_that_is_not_run_has_its_reason():
    shown = {
        (name(page), re.split(r"\s{2,}", body.splitlines()[0])[0])
        for page in PAGES
        for body in blocks(page, "console")
    }
    assert shown == set(NOT_RUN)


def test_the_readme_shows_what_its_python_prints(tmp_path, monkeypatch, capsys):
    readme = ROOT / "README.md"
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(readme, "python")[0], "README.md", "exec"), {})  # noqa: S102 (our own)
    assert blocks(readme, "text")[0] in capsys.readouterr().out


def verdict_sentences():
    """The first argument of every call that notes a reason, with "…" in place of what varies."""
    calls = [
        node
        for room in (_verdict, _many_verdict)
        for node in ast.walk(ast.parse(Path(room.__file__).read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("doubt", "unidentified")
    ]
    for call in calls:
        parts = getattr(call.args[0], "values", [call.args[0]])
        yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)


def test_every_reason_of_a_verdict_is_explained_once():
    page = (ROOT / "docs" / "trust.md").read_text()
    explained = re.findall(r'^\| "([^"]+)" \|', page, re.MULTILINE)
    sentences = list(verdict_sentences())
    for sentence in sentences:
        assert sum(words in sentence for words in explained) == 1, sentence
    for words in explained:
        assert any(words in sentence for sentence in sentences), words


def test_every_public_name_is_in_the_reference():
    directives = re.findall(r"^\.\. auto\w+:: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.M)
    assert {f"labelfree.{each}" for each in labelfree.__all__} <= set(directives)


def test_every_page_is_in_the_index():
    listed = {
        line for tree in blocks(ROOT / "docs" / "index.md", "{toctree}") for line in tree.split()
    }
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_every_room_has_its_place_on_the_pages_for_developers(page):
    named = set(re.findall(r"`(\w+)(?:\.py)?`", (ROOT / page).read_text()))
    rooms = {path.stem for path in Path(_verdict.__file__).parent.glob("*.py")} - {"__init__"}
    assert rooms <= named


# --- the command line says what its page says ---------------------------------------------------


def commands():
    return typer.main.get_command(_cli.app).commands


def options(command):
    return {
        option
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("-")
    }


def sections():
    page = (ROOT / "docs" / "command_line.md").read_text()
    return {title.strip("`") for title in re.findall(r"^## (.*)$", page, re.MULTILINE)}


def test_every_command_has_its_section():
    assert {title for title in sections() if title.startswith("labelfree ")} == {
        f"labelfree {command}" for command in commands()
    }


def test_the_page_of_the_command_line_is_up_to_date():
    writer = runpy.run_path(ROOT / "docs" / "write_command_line.py")
    page = writer["PAGE"].read_text("utf-8")
    assert writer["written"](page) == page, "run make fix"


@pytest.mark.parametrize("command", sorted(commands()))
def test_the_page_shows_every_option_and_default_of_a_command(command):
    page = (ROOT / "docs" / "command_line.md").read_text()
    start = page.index(f"<!-- written: command {command} -->")
    own = page[start : page.index("<!-- end -->", start)]
    shared = "".join(re.findall(r"<!-- written: options .*?<!-- end -->", page, re.DOTALL))
    for parameter in commands()[command].params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            there = shared if parameter.rich_help_panel else own
            spelled = re.compile(rf"`{parameter.opts[0]}[ `]")
            (line,) = (row for row in there.splitlines() if spelled.search(row[:40]))
            default = parameter.default
            if default not in (None, False):
                shown = f"{default:g}" if isinstance(default, float) else default
                assert f"Default: `{shown}`." in line


@pytest.mark.parametrize("command", sorted(commands()))
def test_the_example_in_the_help_of_a_command_runs(command, tmp_path):
    title, example = commands()[command].epilog.split("\n\n")
    assert title == "Example:"
    assert max(map(len, example.splitlines())) <= 78  # --help would break a longer line
    run_in_shell(example, tmp_path)


def test_messages_spell_only_options_that_there_are():
    there = {option.lstrip("-") for command in commands().values() for option in options(command)}
    assert set(_terminal.OPTIONS) <= there
