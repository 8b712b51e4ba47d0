"""The front door: votes in, graded classifiers out. Calls the rooms in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelfree._arrays import FEWEST
from labelfree._errors import OptionsError, VotesError
from labelfree._gold_labels import gold_items
from labelfree._many_walk import is_for_many, walk_many
from labelfree._options import check_options, facts_of, groups_asked, many_facts, share_of
from labelfree._origin import origin_of
from labelfree._panel import to_compare_on
from labelfree._result import Estimate
from labelfree._tally import Tally, settled, tally
from labelfree._tally_file import is_tally_file
from labelfree._verdict import Findings
from labelfree._votes import Label, Votes, plain_reading, read_votes
from labelfree._walk import Walk, walk_two
from labelfree._walked import Walked

Known = Mapping[str, Mapping[str, Any]]


def estimate(
    votes: Any,
    *,
    method: str = "map",
    prevalence: float | Mapping[Label, float] | None = None,
    positive: Label = None,
    classes: Sequence[Label] | None = None,
    ordered: bool = False,
    missing: Label | Sequence[Label] = (),
    classifiers: Sequence[str] | None = None,
    item: str | None = None,
    classifier: str | None = None,
    vote: str | None = None,
    duplicates: str | None = None,
    gold: Any = None,
    known: Known | None = None,
    dependence: str | Sequence[Sequence[str]] = "auto",
    level: float = 0.95,
    vector: str = "triplets",
    prior: float = 1.0,
) -> Estimate:
    """Grade classifiers from their votes alone.

    Parameters
    ----------
    votes : array (n, m), dataframe, mapping of columns, path of a file, or Tally
        Rows are items, columns are three or more classifiers; or the long form, one row a vote,
        when `classifier` and `vote` name its columns. Missing votes may be anywhere: null, None,
        NaN, or what `missing` says.
    method : {"map", "likelihood", "tensor"}, default "map"
        "tensor" takes the imbalance from the third moments (JNK Algorithm 1), "likelihood" from
        the restricted likelihood (JNK Algorithm 2), and "map" goes on from there to the posterior
        mode of all rates together, and to models of shared errors where the votes ask for one.
    prevalence : float or mapping, optional
        Pr(positive), where it is known; of more than two classes ``{label: share}``, all of them.
    positive : label, optional
        The positive label; by default the greater in sorted order: 1 of −1/1 and of 0/1, True,
        "yes" of no/yes.
    classes : sequence of labels, optional
        All the labels there may be, in order; of two, the positive one last. Any other label is refused.
        By default whatever labels the votes hold, in sorted order.
    ordered : bool, default False
        Whether the classes stand in order, as grades do: a classifier is then taken to say more the more
        there is. Has no effect on two classes.
    missing : label or sequence of labels, optional
        What stands for a missing vote.
    classifiers : sequence of str, optional
        Names for the columns of an array, or the columns of a table that hold votes.
    item, classifier, vote : str, optional
        Columns of the long form. `item` alone names the items of a wide table (by default a column
        called "item", where there is one).
    duplicates : {"last", "drop"}, optional
        Long form: what to do where a classifier voted more than once on an item. "last" keeps the
        vote that stands last, and so depends on the order of the table's rows; "drop" keeps none
        of them, whatever the order. A row without a vote does not count. By default they are refused.
    gold : mapping, str or sequence, optional
        Known labels of some items, drawn at random from all: ``{item: label}`` (an item is its row's
        number, or its name where the table has an item column), the name of a column that holds
        them, or one label an item with None elsewhere. They fix the direction; and where the
        classifiers share errors on hard items, they calibrate rates, probabilities and intervals.
    known : mapping, optional
        What is known of some classifiers' rates: ``{"a": {"sensitivity": 0.9}}`` holds a rate
        fixed, ``{"a": {"specificity": (18, 2)}}`` gives it a Beta(18, 2) prior. Of more than two classes
        ``{"a": {"confusion": rows}}``, a row for each true class: Pr(voted class given that).
    dependence : {"auto", "test", "ignore"} or sequence of groups of names, default "auto"
        "auto" tests whether the classifiers share errors and models it where they do; "test" only
        tests; "ignore" does neither; groups, as ``[("a", "b")]``, are taken as classifiers that copy one another.
        Only method "map" models shared errors by votes alone; the others test. With more than two
        classes, or more than a thousand classifiers, nothing but gold labels corrects for them.
    level : float, default 0.95
        Of the intervals.
    vector : {"triplets", "log-linear", "iterated"}, default "triplets"
        How the diagonal of the covariance is filled in on the way to the rank-one vector.
    prior : float, default 1
        Pseudo-votes in every cell of every classifier's confusion matrix, and pseudo-items of every
        class, for method "map": 1 is a Beta(2, 2) prior, 0 turns the prior off. Where the counts of a
        tally are exact frequencies, it is off. With more than two classes it multiplies a prior
        that all classifiers share and the votes tell the shape of.

    Returns
    -------
    Estimate

    Notes
    -----
    Assumes that items are drawn alike, and that more than half of the classifiers are better than
    chance. ``estimate.verdict`` says what speaks against it.

    Examples
    --------
    >>> import labelfree as lf
    >>> from labelfree import simulate
    >>> drawn = simulate.votes(
    ...     5000, sensitivity=[0.8, 0.7, 0.9, 0.6], specificity=[0.7, 0.8, 0.8, 0.9]
    ... )
    >>> estimate = lf.estimate(drawn.votes)
    >>> estimate.sensitivity.round(1).tolist()
    [0.8, 0.7, 0.9, 0.6]
    """
    reading = plain_reading(
        missing=missing, item=item, classifier=classifier, vote=vote, duplicates=duplicates
    )
    check_options(method, vector, prior, level)
    options = {"positive": positive, "classes": classes, "classifiers": classifiers, **reading}
    if gold is None:
        counted, known_items = tally(votes, **options), None
    else:
        checked, counted = settled(_votes_with_gold(votes, gold, options))
        known_items = gold_items(gold, checked)
    _check_tally(counted)
    groups = groups_asked(dependence, counted.classifiers, method)
    findings = Findings()
    if is_for_many(counted, method, groups):
        shares, fixed, believed = many_facts(known, prevalence, counted, groups)
        walked = walk_many(
            findings,
            counted,
            method=method,
            ordered=ordered,
            prior=prior,
            class_probabilities=shares,
            fixed=fixed,
            believed=believed,
            gold=known_items,
            dependence=dependence,
            level=level,
        )
    else:
        facts, share = facts_of(known, counted.classifiers), share_of(prevalence, counted.classes)
        walk = Walk(counted, method, vector, share, prior, facts, known_items)
        walked = walk_two(findings, walk, dependence=dependence, groups=groups, level=level)
    graded = {"method": method, "prevalence": prevalence, "known": known, "dependence": dependence}
    graded |= {"level": level, "vector": vector, "prior": prior, "ordered": ordered}
    whole = np.isfinite(counted.sample_size)
    return Estimate(
        classifiers=counted.classifiers,
        classes=counted.classes,
        method=method,
        level=level,
        items=int(counted.stands_for) if whole else counted.items,
        patterns=len(counted),
        votes=tuple(int(count) if whole else float(count) for count in walked.votes),
        notes=_notes(walked),
        converged=walked.converged,
        verdict=findings.verdict(),
        reading=reading,
        _choice=walked.choice,
        _alarm=walked.alarm,
        _vector=walked.vector,
        missed=walked.missed,
        origin=origin_of(counted, graded, walked.curve),
        _seen=to_compare_on(counted.alone()),
        sample=None if counted.whole is None else int(counted.items),
    )


def _votes_with_gold(votes: Any, gold: Any, options: dict[str, Any]) -> Votes:
    if isinstance(votes, Tally) or is_tally_file(votes):
        raise OptionsError(
            "gold= needs the items, but a tally has forgotten them; give the votes themselves."
        )
    return read_votes(votes, **options, apart=gold if isinstance(gold, str) else None)


def _notes(walked: Walked) -> tuple[str, ...]:
    return tuple(
        "no votes" if votes == 0 else "constant" if constant else ""
        for votes, constant in zip(walked.votes, walked.constant, strict=True)
    )


def _check_tally(counted: Tally) -> None:
    if len(counted.classifiers) < FEWEST:
        raise VotesError(
            f"Expected votes of at least three classifiers, got {len(counted.classifiers)}; add some."
        )
