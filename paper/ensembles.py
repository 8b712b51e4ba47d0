"""Votes of ten classifiers, each trained on its own 200 random instances (JNK section 6.2).

Three ways to the same kind of votes: ready ones of a folder; Weka, the source's own software, where
its jar and Java are there; scikit-learn's nearest equivalents.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from paper.work import random

TRAINED_ON = 200
WAYS = ("ready", "weka", "sklearn")

# JNK Table 1: its names, and the classes and options of Weka.
WEKA = {
    "IBk": ("lazy.IBk", "-K", "1"),
    "KStar": ("lazy.KStar",),
    "J48": ("trees.J48",),
    "PART": ("rules.PART",),
    "LMT": ("trees.LMT",),
    "RandomForest": ("trees.RandomForest", "-I", "10"),
    "SimpleLogistic": ("functions.SimpleLogistic",),
    "DecisionStump": ("trees.DecisionStump",),
    "SMO": ("functions.SMO",),
    "NaiveBayes": ("bayes.NaiveBayes",),
}

# What stands in for each in scikit-learn, as the page says it.
NEAREST = {
    "IBk": "1 nearest neighbour, attributes scaled to 0 … 1",
    "KStar": "20 nearest neighbours weighted by 1/distance (no K*)",
    "J48": "decision tree by entropy, two instances a leaf at least",
    "PART": "decision tree of eight leaves at most (no rule learner)",
    "LMT": "gradient boosting of 50 trees of depth two (no logistic model tree)",
    "RandomForest": "random forest of ten trees",
    "SimpleLogistic": "logistic regression with an L1 penalty",
    "DecisionStump": "decision tree of depth one",
    "SMO": "support vectors with a linear kernel, attributes scaled to 0 … 1",
    "NaiveBayes": "naive Bayes with normal densities",
}


@dataclass(frozen=True)
class Votes:
    """Votes (n, 10) of −1, 1 and 0 (none), and the true classes."""

    votes: np.ndarray
    truth: np.ndarray


def ready(folder: Path | None, name: str) -> list[Path]:
    """Return the files of ready votes, in the order of the realizations."""
    return [] if folder is None else sorted((folder / "weka").glob(f"{name}_r*.npz"))


def read(file: Path) -> Votes:
    kept = np.load(file)
    return Votes(kept["votes"].T, np.where(kept["y"] > 0, 1, -1).astype(np.int8))


def drawn_instances(realization: int, rows: int) -> list[np.ndarray]:
    """For each classifier its own training instances."""
    return [
        random(4, realization, place).permutation(rows)[:TRAINED_ON] for place in range(len(WEKA))
    ]


# --- scikit-learn -------------------------------------------------------------------------------


def by_sklearn(attributes: np.ndarray, truth: np.ndarray, realization: int) -> Votes:
    trained_on = drawn_instances(realization, len(truth))
    votes = np.empty((len(truth), len(trained_on)), dtype=np.int8)
    for place, (rows, make) in enumerate(zip(trained_on, _nearest().values(), strict=True)):
        model = make(realization).fit(attributes[rows], truth[rows])
        votes[:, place] = model.predict(attributes)
    return Votes(votes, truth)


def _nearest() -> dict[str, Callable[[int], Any]]:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    def neighbours(count: int, weights: str) -> Any:
        return make_pipeline(MinMaxScaler(), KNeighborsClassifier(count, weights=weights))

    return {
        "IBk": lambda _: neighbours(1, "uniform"),
        "KStar": lambda _: neighbours(20, "distance"),
        "J48": lambda seed: DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=2, random_state=seed
        ),
        "PART": lambda seed: DecisionTreeClassifier(max_leaf_nodes=8, random_state=seed),
        "LMT": lambda seed: GradientBoostingClassifier(
            n_estimators=50, max_depth=2, random_state=seed
        ),
        "RandomForest": lambda seed: RandomForestClassifier(n_estimators=10, random_state=seed),
        "SimpleLogistic": lambda seed: make_pipeline(
            StandardScaler(),
            LogisticRegression(l1_ratio=1.0, C=0.3, solver="liblinear", random_state=seed),
        ),
        "DecisionStump": lambda seed: DecisionTreeClassifier(max_depth=1, random_state=seed),
        "SMO": lambda _: make_pipeline(MinMaxScaler(), SVC(kernel="linear")),
        "NaiveBayes": lambda _: GaussianNB(),
    }


# --- Weka ---------------------------------------------------------------------------------------


def weka_is_here() -> bool:
    return bool(_jars()) and shutil.which("java") is not None


def weka_class_path() -> str:
    """Return the class path of Weka."""
    if not weka_is_here():
        raise SystemExit(
            "--classifiers weka needs Java and Weka's jar: install Java, and pip install '.[weka]' "
            "or set WEKA_JAR to the file; or take --classifiers sklearn."
        )
    return os.pathsep.join(map(str, _jars()))


def _jars() -> list[Path]:
    """Return the jar of WEKA_JAR, or those of the package `python-weka-wrapper3` (extra: weka)."""
    given, found = os.environ.get("WEKA_JAR"), find_spec("weka")
    if given:
        jars = [Path(given)]
    elif found is not None and found.origin is not None:
        jars = sorted((Path(found.origin).parent / "lib").glob("*.jar"))
    else:
        jars = []
    return jars if all(jar.is_file() for jar in jars) else []


def by_weka(
    attributes: np.ndarray,
    truth: np.ndarray,
    realization: int,
    trained_on: list[np.ndarray] | None = None,
) -> Votes:
    """Train Weka's own classifiers, one Java process for each, on files of its own format."""
    trained_on = drawn_instances(realization, len(truth)) if trained_on is None else trained_on
    path = weka_class_path()
    votes = np.empty((len(truth), len(WEKA)), dtype=np.int8)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        everything = folder / "all.arff"
        _write_arff(everything, attributes, truth)
        for column, (rows, scheme) in enumerate(zip(trained_on, WEKA.values(), strict=True)):
            train = folder / "train.arff"
            _write_arff(train, attributes[rows], truth[rows])
            votes[:, column] = _classified(path, scheme, train, everything, folder)
    return Votes(votes, truth)


def _write_arff(file: Path, attributes: np.ndarray, truth: np.ndarray) -> None:
    header = [f"@attribute f{place} numeric" for place in range(attributes.shape[1])]
    rows = [
        ",".join([*map(repr, numbers), "pos" if label > 0 else "neg"])
        for numbers, label in zip(attributes.tolist(), truth.tolist(), strict=True)
    ]
    text = ["@relation votes", *header, "@attribute class {neg,pos}", "@data", *rows, ""]
    file.write_text("\n".join(text), encoding="ascii")


def _classified(
    path: str, scheme: tuple[str, ...], train: Path, everything: Path, folder: Path
) -> np.ndarray:
    """Return one classifier's votes on every instance."""
    answers = folder / "votes.csv"
    output = f"weka.classifiers.evaluation.output.prediction.CSV -file {answers} -suppress"
    name, *options = scheme
    command = [
        "java", "-Xmx4g", f"-DWEKA_HOME={folder / 'weka'}", "-cp", path, f"weka.classifiers.{name}",
        "-t", str(train), "-T", str(everything), "-classifications", output, "-o", *options,
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode or not answers.is_file():
        said = (done.stderr or done.stdout).strip().splitlines()
        raise SystemExit(f"Weka's {name} failed: {said[0] if said else 'it said nothing'}")
    with answers.open(encoding="utf-8", newline="") as file:
        voted = [row["predicted"].partition(":")[2] for row in csv.DictReader(file)]
    answers.unlink()
    return np.array([{"pos": 1, "neg": -1}.get(vote, 0) for vote in voted], dtype=np.int8)
