"""Make the example that `labelfree demo` grades: ten classifiers vote on handwritten digits.

The task is to tell the digits 0-4 from 5-9 in scikit-learn's built-in images.
Ten classifiers of different kinds each learn from a small random part of the images.
The parts are disjoint, so no two classifiers learn from the same image.
All ten then vote on the images that none of them has seen.

Two files come out, next to each other in `src/labelfree/example/`:

- `digits.csv`: one row an image, one column a classifier, a vote in each cell;
- `digits.truth.csv`: the true label of each image, which only the demo's last step reads.

The votes are the strings `0-4` and `5-9`. In sorted order `5-9` comes last, so it is the
positive label. All randomness is seeded: a second run writes the same bytes.

Run it with `.venv/bin/python examples/make_digits.py`.
"""

import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

SEED = 2015
PART = 50  # images each classifier learns from: enough to beat chance, too few to be good
LOW, HIGH = "0-4", "5-9"
FOLDER = Path(__file__).resolve().parent.parent / "src" / "labelfree" / "example"


def classifiers() -> dict[str, ClassifierMixin]:
    """Return ten untrained classifiers of different kinds, by column name."""
    return {
        "boosted_stumps": AdaBoostClassifier(n_estimators=30, random_state=SEED),
        "decision_tree": DecisionTreeClassifier(max_depth=4, random_state=SEED),
        "linear_discriminant": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
        "logistic_regression": LogisticRegression(max_iter=1000),
        "naive_bayes": GaussianNB(var_smoothing=1e-2),
        "nearest_centroid": NearestCentroid(),
        "nearest_neighbour": KNeighborsClassifier(n_neighbors=3),
        "neural_network": MLPClassifier(hidden_layer_sizes=(8,), max_iter=300, random_state=SEED),
        "random_forest": RandomForestClassifier(n_estimators=50, random_state=SEED),
        "support_vectors": SVC(gamma="scale"),
    }


def main() -> None:
    """Train the classifiers, write both files, print the true rates."""
    images, digits = load_digits(return_X_y=True)
    labels = np.where(digits >= 5, HIGH, LOW)
    models = classifiers()
    shuffled = np.random.default_rng(SEED).permutation(len(labels))
    parts = shuffled[: PART * len(models)].reshape(len(models), PART)
    voted_on = np.sort(shuffled[PART * len(models) :])
    truth = labels[voted_on]

    votes = {}
    for (name, model), part in zip(models.items(), parts, strict=True):
        with warnings.catch_warnings():
            # A half-trained network is a fine voter: it need not converge.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # The pixels at the border are always blank, so their spread is zero.
            warnings.filterwarnings("ignore", "self.within_class_std_dev_")
            votes[name] = model.fit(images[part], labels[part]).predict(images[voted_on])

    items = [f"digit_{index:04d}" for index in voted_on]
    FOLDER.mkdir(parents=True, exist_ok=True)
    write(FOLDER / "digits.csv", {"item": items, **votes})
    write(FOLDER / "digits.truth.csv", {"item": items, "label": truth})

    print(f"{len(items)} images, {np.mean(truth == HIGH):.3f} of them {HIGH}")
    print(f"{'classifier':<20} sensitivity specificity balanced accuracy")
    for name, voted in votes.items():
        sensitivity = np.mean(voted[truth == HIGH] == HIGH)
        specificity = np.mean(voted[truth == LOW] == LOW)
        balanced = (sensitivity + specificity) / 2
        print(f"{name:<20} {sensitivity:11.3f} {specificity:11.3f} {balanced:17.3f}")


def write(path: Path, columns: dict[str, list[str] | np.ndarray]) -> None:
    """Write columns of equal length as CSV, with the same line ends on every system."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


if __name__ == "__main__":
    main()
