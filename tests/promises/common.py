"""What the promises share: how long to run, the Cramér–Rao bound, and where the real votes are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import labelfree as lf
from labelfree._latent_class import Model, Prior, information
from labelfree._products import Blocks

FULL = os.environ.get("LABELFREE_PROMISES") == "full"


def sets(short: int, long: int) -> int:
    """How many data sets: few in `make test`, many in `make promises`."""
    return long if FULL else short


def data_folder() -> Path:
    """Where the real votes are, or skip and say why."""
    folder = Path(os.environ.get("LABELFREE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real votes are not here ({folder}); set LABELFREE_DATA to their folder")
    return folder


def cramer_rao(
    sensitivity: np.ndarray, specificity: np.ndarray, imbalance: float, items: int
) -> tuple:
    """Smallest variances of an unbiased estimate of b, of each ψ and of each η."""
    blocks = Blocks(lf.simulate.exact(sensitivity, specificity, (1 + imbalance) / 2))
    model = Model.binary(imbalance, sensitivity, specificity)
    of_logits = np.diag(
        np.linalg.inv(items * information(blocks, model, Prior.flat(len(sensitivity), 2, 0.0)))
    )
    prevalence = (1 + imbalance) / 2
    of_rates = of_logits[1:].reshape(-1, 2)
    return (
        of_logits[0] * (2 * prevalence * (1 - prevalence)) ** 2,
        of_rates[:, 1] * (sensitivity * (1 - sensitivity)) ** 2,
        of_rates[:, 0] * (specificity * (1 - specificity)) ** 2,
    )


def balanced_accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    """Mean of the shares of each class that are labelled right."""
    return float(np.mean([(labels[truth == label] == label).mean() for label in np.unique(truth)]))
