"""labelfree: grade classifiers without labels.

Votes of three or more classifiers go in; each one's sensitivity and specificity, the prevalence, a
better label for every item and a verdict on whether to trust it come out.

The rooms, in the order that data walks through them (each may call those above it):

    _errors        what can go wrong, as a tree
    _files         a votes file -> a frame; whole files out, or none
    _large_files   a large votes file -> pieces of its rows, and pieces of answers -> a file
    _labels        what may be a label, of which kind it is, which stands for which class
    _columns       columns of votes -> columns that can be compared with their classes
    _arrays        arrays and lists -> a table of votes
    _frames        dataframes of any kind -> columns of votes, and answers back
    _long_form     one row a vote -> a table of votes, dense or sparse
    _engines       tables that live in an engine, counted there
    _engine_long   the long form in an engine -> one row an item, or its tally
    _engine_wide   wide tables in an engine whose patterns do not repeat: sums there, a sample at home
    _votes         what a user has -> checked votes
    _patterns      a stretch of votes -> its patterns as bits
    _gold_labels   gold labels as given -> their votes and classes
    _counting      votes -> their distinct patterns and counts; equal ones merged
    _batches       batches of votes -> the classifiers and classes of them all
    _tally_file    a tally <-> one file: plain arrays, a version, a hash
    _tally         distinct vote patterns and their counts; tallies add up and subtract
    _products      the three products with the one-hot vote matrix
    _moments       tally -> means, covariances, third-moment sums
    _rank_one      covariance -> the rank-one vector v, its sign, its residual
    _rates         imbalance -> sensitivity and specificity
    _imbalance     v and moments -> class imbalance: tensor, restricted likelihood
    _origin        where an estimate comes from: options, hash of the votes, likelihood
    _latent_class  the likelihood: EM and Newton; its information
    _intervals     information -> intervals
    _many_intervals  the same for K classes: every cell of every confusion matrix
    _categories    the joint votes of groups of classifiers, laid out for look-up
    _group_start   where a fit of groups starts: moments of different groups
    _group_model   the likelihood with groups of classifiers that share errors
    _group_information  how well the votes determine that model
    _difficulty    items unlike in difficulty: the one-trait model, tempering
    _tempered_error  how far tempered rates may be off by sampling
    _gold          a few gold labels calibrate the rest
    _sql           names, labels and numbers as each database spells them
    _consensus     rates -> the linear rule: labels, probabilities, SQL
    _many_gold     a few gold labels calibrate K classes
    _expressions   a rule -> columns added to a table in an engine
    _one_vs_rest   K classes by two at a time: each against the rest
    _ordered       classes in order: splits at thresholds, rows that rise
    _kinds         classes in order: few numbers a classifier
    _starts        K classes: where the search for them starts
    _item_types    two types of items: on some, votes follow a matrix common to all
    _shared_prior  rare classifiers lend strength from all: the pool's pseudo-votes
    _multiclass    K classes: from the tally to confusion matrices
    _panel         which few of many classifiers to keep
    _next_items    which items to ask for one more vote on
    _tensors       K classes from second and third moments: three groups, completion
    _groups        which classifiers share errors: pointer, candidates, choice
    _dependence    do the classifiers err independently? the alarm
    _known         fixed rates stay as they are, Beta priors pull
    _choice        which model the answer comes from
    _verdict       may the numbers be relied on?
    _many_verdict  what the votes of K classes say for and against the answer
    _evidence      what speaks against copies, gold labels, known values
    _requirements  requirements as text, held against what was found
    _again         votes read again, for an answer that there is
    _labelling     a file of votes -> a file of labels, piece by piece
    _movement      how the consensus moves against the majority; items to look at first
    _answers       votes -> labels, probabilities, SQL, by the rules of an estimate
    _shown         an estimate as rows, and as text
    _saved         what was found <-> plain JSON values
    _view          what charts and pages show of an estimate: rows, rounded honestly
    _notebook      an estimate as a small table for notebooks
    _layout        where names and lines go on a chart
    _style         how every chart looks: colours, letters, axes
    _class_charts  charts of more than two classes
    charts         charts of an estimate (extra: report)
    report         an estimate -> one self-contained HTML page (extra: report)
    _result        Estimate: the answer, and what can be done with it
    _comparison    two estimates: what changed, and is it more than chance?
    _options       options of the front door: what each may be
    _walked        what a walk brings back
    _walk          the rooms above called in order, for two classes
    _many_walk     the same for K classes, and for crowds
    _estimate      estimate(votes) -> Estimate: the front door
    _drift         tallies of periods: which rates changed, and is it more than chance?
    _messages      messages between items and classifiers along the votes
    _rival         Rival: what another published method found
    rivals         other published methods under one signature
    simulate       votes drawn from known rates
    _plan          how many items, or gold labels, for a wanted interval
    sklearn        SpectralEnsemble: the scikit-learn face (extra: sklearn)
    _terminal      what a person reads in a terminal
    _given         how the words of a command line become what Python takes
    _arguments     what stands behind a command: its options
    _program       the program around the commands: errors in a sentence, exit codes
    _periods       commands on tallies of periods: tally, drift
    _questions     commands that ask something of an estimate
    _cli           arguments in, words out

JNK in the comments is Jaffe, Nadler and Kluger (AISTATS 2015), the source of the method; PNAS is
Parisi, Strino, Nadler and Kluger (2014), on which it builds.
"""

from labelfree import charts, rivals, simulate
from labelfree._comparison import Comparison, compare
from labelfree._drift import Drift, drift
from labelfree._errors import (
    FileError,
    LabelfreeError,
    LabelfreeWarning,
    NotIdentifiedError,
    OptionsError,
    VotesError,
)
from labelfree._estimate import estimate
from labelfree._panel import Panel
from labelfree._plan import Plan, plan
from labelfree._requirements import Check
from labelfree._result import Estimate, load
from labelfree._tally import Tally, tally
from labelfree._verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "Check",
    "Comparison",
    "Drift",
    "Estimate",
    "FileError",
    "LabelfreeError",
    "LabelfreeWarning",
    "NotIdentifiedError",
    "OptionsError",
    "Panel",
    "Plan",
    "Tally",
    "Verdict",
    "VotesError",
    "charts",
    "compare",
    "drift",
    "estimate",
    "load",
    "plan",
    "rivals",
    "simulate",
    "tally",
]
