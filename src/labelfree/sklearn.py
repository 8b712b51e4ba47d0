"""SpectralEnsemble: the scikit-learn face of labelfree (extra: sklearn).

The only room that imports scikit-learn; ``import labelfree`` does not reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from labelfree._estimate import estimate
from labelfree._result import Estimate
from labelfree._votes import ANSWER_COLUMNS, Label

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ImportError(
        "labelfree.sklearn needs scikit-learn, which is not installed; "
        "install it with: pip install 'labelfree[sklearn]'."
    ) from None

__all__ = ["SpectralEnsemble"]


class SpectralEnsemble(ClassifierMixin, BaseEstimator):
    """Consensus of classifiers, each weighed by rates that were estimated without labels.

    What scikit-learn calls a feature is here a classifier, a sample is an item, and `X` holds
    votes: ``X[i, j]`` is the label that classifier j gives to item i. Nothing is learned from `y`.

    Parameters
    ----------
    method : {"map", "likelihood", "tensor"}, default "map"
        As in :func:`labelfree.estimate`, like all that follow.
    prevalence : float or mapping, optional
        Pr(positive), where it is known; of more than two classes, the share of each by its label.
    positive : label, optional
        The label that sensitivity and prevalence speak of; by default the greater in sorted order.
        It has no bearing on `classes_`, which is always sorted.
    ordered : bool, default False
        Whether more than two classes stand in their sorted order, as grades do.
    missing : label or sequence of labels, optional
        What stands for a missing vote, beside None, null and NaN.
    vector : {"triplets", "log-linear", "iterated"}, default "triplets"
        How the diagonal of the covariance is filled in on the way to the rank-one vector.
    prior : float, default 1
        Pseudo-votes in every cell of every classifier's confusion matrix, for method "map".

    Attributes
    ----------
    classes_ : (K,) array
        The labels in sorted order; the columns of :meth:`predict_proba` follow it.
    sensitivity_ : (m,) array
        Two classes: Pr(votes positive given positive) of every classifier.
    specificity_ : (m,) array
        Two classes: Pr(votes negative given negative) of every classifier.
    balanced_accuracy_ : (m,) array
        Mean over the classes of Pr(votes so given the class); of two, of sensitivity and specificity.
    accuracy_ : (m,) array
        Pr(votes for the true class) of every classifier.
    prevalence_ : float
        Two classes: Pr(positive).
    class_probabilities_ : (K,) array
        In the order of `classes_`.
    confusion_ : (m, K, K) array
        Pr(vote given true class) as [classifier, true class, voted class], both in the order of `classes_`.
    verdict_ : Verdict
        Whether to trust the numbers: ``.level`` is "sound" or "caution", ``.reasons`` says why.
    estimate_ : Estimate
        Everything else.
    n_features_in_ : int
        m, the number of classifiers.
    feature_names_in_ : (m,) array of str
        Their names, where `X` is a dataframe whose column names are all text.

    Notes
    -----
    Assumes what :func:`labelfree.estimate` assumes: errors that are independent given the class,
    and more than half of the classifiers better than chance. `predict` and `predict_proba` give
    what ``estimate_.label`` and ``estimate_.probability`` give; a tie goes to the positive class.

    Examples
    --------
    >>> from labelfree import simulate
    >>> from labelfree.sklearn import SpectralEnsemble
    >>> drawn = simulate.votes(
    ...     5000, sensitivity=[0.8, 0.7, 0.9, 0.6], specificity=[0.7, 0.8, 0.8, 0.9]
    ... )
    >>> ensemble = SpectralEnsemble().fit(drawn.votes)
    >>> ensemble.sensitivity_.round(1).tolist()
    [0.8, 0.7, 0.9, 0.6]
    >>> ensemble.predict(drawn.votes[:5])
    array([0, 0, 0, 0, 1])
    >>> ensemble.predict_proba(drawn.votes).shape
    (5000, 2)
    >>> ensemble.verdict_.level
    'sound'
    """

    def __init__(
        self,
        *,
        method: str = "map",
        prevalence: float | Mapping[Label, float] | None = None,
        positive: Label = None,
        ordered: bool = False,
        missing: Label | Sequence[Label] = (),
        vector: str = "triplets",
        prior: float = 1.0,
    ) -> None:
        self.method = method
        self.prevalence = prevalence
        self.positive = positive
        self.ordered = ordered
        self.missing = missing
        self.vector = vector
        self.prior = prior

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate every classifier's rates from the votes.

        Parameters
        ----------
        X : array or dataframe, (n, m)
            Votes: one row an item, one column a classifier, three or more of them. Missing votes
            may be anywhere.
        y : array (n,), optional
            Its values are ignored; its length must be that of `X`.

        Returns
        -------
        SpectralEnsemble
            The estimator itself.

        Raises
        ------
        labelfree.NotIdentifiedError
            Where the votes hold no signal. The error says what is wanting.
        labelfree.VotesError
            Where `X` does not hold votes of three or more classifiers with two labels or more.
        """
        votes = self._checked(X, fitting=True)
        if y is not None:
            check_consistent_length(votes, y)
        found = estimate(
            votes,
            method=self.method,
            prevalence=self.prevalence,
            positive=self.positive,
            ordered=self.ordered,
            missing=self.missing,
            classifiers=_column_names(X),
            vector=self.vector,
            prior=self.prior,
        )
        self.balanced_accuracy_ = (
            found.balanced_accuracy
        )  # where nothing is identified, this raises
        self.accuracy_ = found.accuracy
        if len(found.classes) == 2:
            self.sensitivity_ = found.sensitivity
            self.specificity_ = found.specificity
            self.prevalence_ = found.prevalence
        self.classes_ = np.array(sorted(found.classes))
        self._order = [found.classes.index(label) for label in sorted(found.classes)]
        self.class_probabilities_ = found.class_probabilities[self._order]
        self.confusion_ = found.confusion[:, self._order][:, :, self._order]
        self.verdict_ = found.verdict
        self.estimate_ = found
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Label every item by the consensus of its votes.

        Parameters
        ----------
        X : array or dataframe, (n, m)
            Votes of the same classifiers, on these or on new items.

        Returns
        -------
        (n,) array
            Of the values in `classes_`.
        """
        answer = self._ask(X, Estimate.label)
        labels = answer if isinstance(answer, np.ndarray) else np.asarray(answer["label"])
        return labels.astype(self.classes_.dtype, copy=False)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class for every item, given its votes.

        Parameters
        ----------
        X : array or dataframe, (n, m)
            As for :meth:`predict`.

        Returns
        -------
        (n, K) array
            Columns in the order of `classes_`.
        """
        answer = self._ask(X, Estimate.probability)
        labels = self.estimate_.classes
        if len(labels) == 2:
            found = answer if isinstance(answer, np.ndarray) else answer["probability"]
            positive = np.asarray(found)
            shares = np.column_stack([1.0 - positive, positive])
        elif isinstance(answer, np.ndarray):
            shares = answer
        else:
            columns = [answer[f"probability_{label}"] for label in labels]
            shares = np.column_stack([np.asarray(column) for column in columns])
        return np.asarray(shares[:, self._order])

    def _ask(self, X: Any, question: Callable[[Estimate, Any], Any]) -> Any:
        """Put a question to the estimate; a dataframe comes back with the answer in columns of its own."""
        check_is_fitted(self)
        return question(self.estimate_, self._checked(X, fitting=False))

    def _checked(self, X: Any, *, fitting: bool) -> Any:
        """Check `X` as scikit-learn does; a dataframe stays one, with its nulls and its types."""
        if isinstance(X, np.ma.MaskedArray):
            gaps, X = np.ma.getmaskarray(X), X.data.astype(object)
            X[gaps] = None  # scikit-learn would drop the mask
        names = _column_names(X)
        known = fitting or hasattr(self, "feature_names_in_")
        if names is not None and known and not set(names) & set(ANSWER_COLUMNS):
            return validate_data(self, X, reset=fitting, skip_check_array=True)
        return validate_data(
            self,
            X,
            reset=fitting,
            dtype=None,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if fitting else 1,
            ensure_min_features=3,
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Tell a fit that succeeded from one that failed after it had counted the columns."""
        return hasattr(self, "estimate_")

    def __sklearn_tags__(self) -> Tags:
        """Describe the estimator to scikit-learn's tools."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.classifier_tags.poor_score = True  # on features, which are not votes
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _column_names(X: Any) -> list[str] | None:
    """Names of a dataframe's columns, if they are all text; of anything else, None."""
    if not hasattr(X, "shape"):  # a lazy frame would have to look for its names
        return None
    names = list(getattr(X, "column_names", getattr(X, "columns", ())))  # PyArrow has its own word
    return names if names and all(isinstance(name, str) for name in names) else None
