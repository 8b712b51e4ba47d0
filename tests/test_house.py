"""The house: one list of rooms, arrows that go one way, and heavy imports where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

# Read, not imported: a wrong arrow may be what keeps the package from being imported.
PACKAGE = Path(__file__).parents[1] / "src" / "labelfree"
FRONT = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
DATAFRAMES = {"dask", "duckdb", "narwhals", "pandas", "polars", "pyarrow", "pyspark"}
NARWHALS = {
    "_engine_long",
    "_engine_wide",
    "_engines",
    "_expressions",
    "_frames",
    "_long_form",
}  # the rooms of dataframes; docs/design.md says why not one
NUMERICS_FROM, NUMERICS_TO = "_patterns", "_consensus"


def _rooms_there_are():
    files = {path.stem: path for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    folders = {path.parent.name: path for path in PACKAGE.glob("*/__init__.py")}
    return files | folders


def _rooms_of_the_map():
    """Names of the docstring's indented lines: four blanks, a name, blanks, what it does."""
    lines = [line for line in ast.get_docstring(FRONT).splitlines() if line.startswith("    ")]
    return [line.split()[0] for line in lines]


ROOMS = _rooms_there_are()
ORDER = _rooms_of_the_map()


def modules_imported(tree, package="labelfree"):
    """Every module that the code imports, anywhere in it, with what is taken from the package.

    `from labelfree import simulate` is `labelfree.simulate`, and so is `from . import simulate`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, node.module] if node.module else above)
            if base == "labelfree":
                yield from (f"{base}.{alias.name}" for alias in node.names)
            else:
                yield base


def imported(room):
    """What a room imports, all of its files together."""
    paths = [ROOMS[room]] if ROOMS[room].name != "__init__.py" else ROOMS[room].parent.rglob("*.py")
    found = set()
    for path in paths:
        package = ".".join(["labelfree", *path.parent.relative_to(PACKAGE).parts])
        found.update(modules_imported(ast.parse(path.read_text("utf-8")), package))
    return found


def rooms_called(modules):
    """Rooms among the modules; a public name taken from the package itself is "the package"."""
    for module in modules:
        top, _, rest = module.partition(".")
        if top == "labelfree":
            name = rest.partition(".")[0]
            yield name if name in ROOMS else "the package"


def wrong_arrows(room, modules, order):
    """Rooms that stand below the one that imports them.

    The package's own file offers what the rooms up to the last that it imports make, so that only
    rooms below all of these may import it.
    """
    below = len(order)  # where a room stands that the map does not list
    place = {name: order.index(name) if name in order else below for name in ROOMS}
    place["the package"] = max(place[name] for name in rooms_called(modules_imported(FRONT)))
    called = rooms_called(modules)
    return [name for name in called if name != room and place[name] >= place[room]]


def test_the_map_lists_exactly_the_rooms_that_there_are():
    assert len(set(ORDER)) == len(ORDER)
    assert set(ORDER) == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_calls_only_rooms_above_it(room):
    assert wrong_arrows(room, imported(room), ORDER) == []


@pytest.mark.parametrize("room", ROOMS)
def test_only_the_rooms_of_dataframes_know_narwhals(room):
    tops = {module.partition(".")[0] for module in imported(room)}
    assert ("narwhals" in tops) == (room in NARWHALS)


def test_numerics_know_no_dataframe():
    numerics = ORDER[ORDER.index(NUMERICS_FROM) : ORDER.index(NUMERICS_TO) + 1]
    assert {"_tally", "_products", "_moments", "_rank_one", "_latent_class"} < set(numerics)
    for room in numerics:
        tops = {module.partition(".")[0] for module in imported(room)}
        assert tops & DATAFRAMES == set(), room


def test_the_package_itself_only_passes_names_on():
    import labelfree

    kinds = {type(node) for node in FRONT.body[1:]}
    assert kinds <= {ast.Import, ast.ImportFrom, ast.Assign}
    assert labelfree.__all__ == sorted(labelfree.__all__)
    assert all(hasattr(labelfree, name) for name in labelfree.__all__)


def test_no_room_is_called_utils_or_base():
    assert not {"utils", "_utils", "base", "_base", "helpers", "_helpers", "common"} & set(ROOMS)


@pytest.mark.parametrize(
    ("code", "room", "wrong"),
    [
        ("from labelfree._tally import Tally", "_moments", []),
        ("from labelfree._moments import moments", "_tally", ["_moments"]),
        ("def f():\n    from labelfree._moments import moments", "_tally", ["_moments"]),
        ("if TYPE_CHECKING:\n    import labelfree._moments", "_tally", ["_moments"]),
        ("from labelfree import _moments", "_tally", ["_moments"]),
        ("from . import _moments", "_tally", ["_moments"]),
        ("from ._moments import moments", "_tally", ["_moments"]),
        ("import labelfree", "_tally", ["the package"]),
        ("from labelfree import estimate", "_result", ["the package"]),
        ("from labelfree import estimate", "_cli", []),
        ("import numpy", "_errors", []),
    ],
)
def test_a_wrong_arrow_is_seen_however_it_is_written(code, room, wrong):
    assert wrong_arrows(room, set(modules_imported(ast.parse(code))), ORDER) == wrong


def test_rooms_of_several_files_are_read_from_their_own_place():
    code = ast.parse(
        "from .charts import draw\nfrom .._tally import tally\nfrom .. import _moments"
    )
    found = list(modules_imported(code, "labelfree.report"))
    assert found == ["labelfree.report.charts", "labelfree._tally", "labelfree._moments"]


def test_importing_the_package_leaves_heavy_libraries_alone():
    heavy = ["duckdb", "pandas", "polars", "pyarrow", "rich", "scipy", "sklearn", "typer"]
    code = f"import sys, labelfree; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
