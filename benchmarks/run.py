"""What `make bench` runs: speed and memory, as ratios; and where the other figures come from.

The others take minutes, so they are named and not run.
"""

from __future__ import annotations

import speed

OTHERS = {
    "estimators.py": "errors of the ways to v, and of the methods, beside the Cramér–Rao bound",
    "scale.py": "files, memory and engines by size: 10⁸ × 10 in 324 MB, at 1.04 × the core seconds of Polars' group-by",
    "peers.py": "other tools on the same votes: 837 ×, 265 × and 229 × as fast, at no larger error; installs them apart",
    "cost.py": "what intervals, alarm, verdict and the models of shared errors cost",
    "coverage.py --sets 400": "how often the intervals hold the truth, on simulated votes",
    "coverage.py --real": "the same on real votes, without labels and with gold labels",
    "alarm.py": "how often the alarm is raised, falsely and rightly",
    "dependence.py": "errors when classifiers copy one another",
    "real_votes.py": "items labelled wrongly on real votes, by every method",
    "consensus_choice.py": "the same by settings of the shared prior: why the default is what it is",
    "crowd.py": "a million items and ten thousand raters in the long form, and crowd-kit beside it",
    "real_rates.py": "errors on real votes, family by family",
}


def main() -> None:
    speed.main()
    print("\nother benchmarks, which take minutes each:")
    for words, what in OTHERS.items():
        print(f"  .venv/bin/python benchmarks/{words:<24}{what}")


if __name__ == "__main__":
    main()
