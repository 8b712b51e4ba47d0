"""How often the 95 % intervals hold the truth, by classifiers, items, imbalance and missing votes.

Each row draws its own data sets of independent classifiers, their rates at random between the two
ends shown, and counts. Where the verdict is "unidentified" no interval is claimed; such data sets
are counted apart.

With --real, the same on real votes of which the truth is known (see real_rates.py), through the front
door: without labels, and with 50 gold labels.

Usage: python benchmarks/coverage.py [--sets N | --real [FAMILY …]]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import product

import numpy as np

import labelfree as lf

LEVEL = 0.95


@dataclass(frozen=True)
class Setting:
    """What the data sets of one row have in common; `missing` is a share of votes."""

    classifiers: int
    items: int
    imbalance: float
    missing: float
    lowest: float = 0.5
    highest: float = 0.8


ORDINARY = [
    Setting(m, n, b, missing)
    for m, n, b, missing in product((5, 10, 25), (500, 5000), (0.0, 0.6), (0.0, 0.2))
]
HIGH_RATES = [
    Setting(5, 5000, 0.0, 0.0, 0.6, 0.98),
    Setting(10, 500, 0.6, 0.0, 0.6, 0.98),
    Setting(10, 5000, 0.0, 0.2, 0.6, 0.98),
    Setting(25, 500, 0.6, 0.0, 0.6, 0.98),
]
JUST_IDENTIFIED = [Setting(3, n, b, 0.0, 0.55, 0.9) for n, b in product((500, 5000), (0.0, 0.6))]
PARTS = {
    "ordinary rates": ORDINARY,
    "rates up to .98": HIGH_RATES,
    "three classifiers": JUST_IDENTIFIED,
}


def measured(setting: Setting, sets: int) -> np.ndarray:
    """Shares of rates and of prevalences held, their mean widths, and the share of refusals."""
    rows = []
    for each in range(sets):
        random = np.random.default_rng([setting.classifiers, setting.items, each])
        low, high, m = setting.lowest, setting.highest, setting.classifiers
        true = {
            "sensitivity": random.uniform(low, high, m),
            "specificity": random.uniform(low, high, m),
        }
        true["prevalence"] = (1 + setting.imbalance) / 2
        votes = lf.simulate.votes(
            setting.items, missing=setting.missing, seed=int(random.integers(2**31)), **true
        ).votes
        estimate = lf.estimate(votes, missing=lf.simulate.MISSING, dependence="ignore", level=LEVEL)
        if estimate.verdict.level != "unidentified":
            rows.append(held_and_width(estimate, true))
    return np.append(np.mean(rows, axis=0), 1 - len(rows) / sets)


def held_and_width(estimate: lf.Estimate, true: dict) -> list[float]:
    held, width = {}, {}
    for name, value in true.items():
        ends = estimate.interval(name)
        held[name] = np.mean((ends[..., 0] <= value) & (value <= ends[..., 1]))
        width[name] = np.mean(ends[..., 1] - ends[..., 0])
    return [
        *((each["sensitivity"] + each["specificity"]) / 2 for each in (held, width)),
        held["prevalence"],
        width["prevalence"],
    ]


def show(name: str, settings: list[Setting], sets: int) -> None:
    print(f"\n{name}: {LEVEL:.0%} intervals, {sets} data sets a row")
    print(
        "  m      n    b  missing  rates      | rates held  width | prevalence held  width | refused"
    )
    rows = []
    for setting in settings:
        rows.append(measured(setting, sets))
        of_rates, width, of_prevalence, prevalence_width, refused = rows[-1]
        print(
            f"{setting.classifiers:3} {setting.items:6} {setting.imbalance:4.1f} {setting.missing:8.0%}"
            f"  {setting.lowest:.2f}-{setting.highest:.2f}  |"
            f"{of_rates:11.1%} {width:6.3f} |{of_prevalence:16.1%} {prevalence_width:6.3f} |{refused:8.1%}",
            flush=True,
        )
    mean = np.mean(rows, axis=0)
    print(
        f"mean{'':31}|{mean[0]:11.1%} {mean[1]:6.3f} |{mean[2]:16.1%} {mean[3]:6.3f} |{mean[4]:8.1%}"
    )


def real(asked: list[str], draws: int = 20, gold: int = 50) -> None:
    """Real votes: without labels the classifiers' shared errors are in no interval, with them they are."""
    from real_rates import SMALL, family

    families = ("magic", "musk", "spambase", "mnist", *SMALL, "chexpert_radiologists")
    print(f"\nreal votes: {LEVEL:.0%} intervals; {gold} gold labels drawn {draws} times a set")
    print(
        "                          verdict  | rates held: no labels    gold | width: no labels    gold"
    )
    every = []
    for name in asked or families:
        rows, verdicts = [], set()
        for votes in family(name):
            sensitivity, specificity, b = votes.figures()
            true = {
                "sensitivity": sensitivity,
                "specificity": specificity,
                "prevalence": (1 + b) / 2,
            }
            plain = lf.estimate(votes.codes, missing=-1, level=LEVEL)
            verdicts.add(plain.verdict.level)
            random = np.random.default_rng(0)
            with_gold = []
            for _ in range(draws):
                chosen = random.choice(len(votes.truth), gold, replace=False)
                known = {int(place): int(votes.truth[place]) for place in chosen}
                estimate = lf.estimate(votes.codes, missing=-1, level=LEVEL, gold=known)
                with_gold.append(held_and_width(estimate, true))
            rows.append([*held_and_width(plain, true)[:2], *np.mean(with_gold, axis=0)[:2]])
        every.append(np.mean(rows, axis=0))
        held, width, gold_held, gold_width = every[-1]
        print(
            f"{name:<24}{', '.join(sorted(verdicts)):>9}  |{held:22.0%}{gold_held:8.0%} |{width:17.2f}{gold_width:8.2f}",
            flush=True,
        )
    mean = np.mean(every, axis=0)
    print(f"{'mean':<35}|{mean[0]:22.0%}{mean[2]:8.0%} |{mean[1]:17.2f}{mean[3]:8.2f}")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--sets", type=int, default=200, help="data sets a row (default 200)")
    reader.add_argument(
        "--real", nargs="*", metavar="FAMILY", help="real votes: all families, or those named"
    )
    asked = reader.parse_args()
    start = time.perf_counter()
    if asked.real is not None:
        real(asked.real)
    else:
        for name, settings in PARTS.items():
            show(name, settings, asked.sets)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
