"""Run the experiments: `python -m paper [parts] [--quick]`. Each part writes its own tables."""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

# Before NumPy is loaded, here and in every process that is started: sums of one thread come out the
# same every time, and each process has a core of its own.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[name] = "1"

PARTS = (
    "artificial",
    "classifiers",
    "consistency",
    "real",
    "weka",
    "bound",
    "missing",
    "copying",
    "figures",
    "page",
)


def main() -> None:
    asked = _arguments()
    from paper import settings

    chosen = (settings.quick if asked.quick else settings.full)(asked.jobs)
    work = _work(chosen, asked)
    for part in asked.parts or PARTS:
        start = time.perf_counter()
        for step in work[part]:
            step()
        print(f"{part:<12}{time.perf_counter() - start:7.0f} s", flush=True)
    print(f"tables and figures are in {chosen.folder}, the page is {chosen.page}")


def _work(chosen, asked) -> dict[str, list[Callable[[], None]]]:
    from paper import artificial, beyond, consistency, data, ensembles, figures, page, real

    folder: Path | None = data.folder_of(asked.data)
    ways = asked.classifiers or ["ready", "sklearn"]
    names = asked.sets or data.usual(folder)
    if "weka" in ways:
        ensembles.weka_class_path()  # fail before the work, not after

    def on_real_data() -> None:
        real.real(chosen, folder, ways, names)
        real.ensembles_looked_at(chosen, folder)

    return {
        "artificial": [lambda: artificial.section_6_1(chosen)],
        "classifiers": [lambda: artificial.appendix(chosen)],
        "consistency": [
            lambda: consistency.theorem_1(chosen),
            lambda: consistency.theorem_2(chosen),
        ],
        "real": [on_real_data],
        "weka": [lambda: real.weka_check(chosen, folder)],
        "bound": [lambda: beyond.over_bound(chosen)],
        "missing": [lambda: beyond.missing_votes(chosen)],
        "copying": [lambda: beyond.copying(chosen)],
        "figures": [lambda: figures.draw_all(chosen)],
        "page": [lambda: page.write(chosen)],
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description="The source paper's experiments; without parts, all of them.",
    )
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="part", help=", ".join(PARTS)
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short run, into paper/quick/ (no committed file changes)",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="real data; by default LABELFREE_DATA, ../shared/data, or else OpenML",
    )
    parser.add_argument(
        "--classifiers",
        action="append",
        choices=["ready", "weka", "sklearn"],
        help="whose votes on real data: ready ones of the folder, Weka's own, scikit-learn's nearest; may be given several times (default: ready and sklearn)",
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=["magic", "spambase", "musk", "mnist", "miniboone"],
        help="which real data sets (default: those of the folder; of OpenML all but miniboone, which is large)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
