"""The rule as SQL: every dialect's spelling, and the same probabilities from real engines."""

import re
from decimal import Decimal
from itertools import product

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelfree as lf
from labelfree import simulate
from labelfree._consensus import Rule, Together, answer, posterior_rule, sql, tempered_rule
from labelfree._latent_class import Model
from labelfree._sql import DIALECTS, dialect_of
from labelfree._votes import read_votes

from . import postgres
from .sentences import refused

NAMES = ["count", 'a "b" c', "it's", "<script>", "d`e\\f"]
MODEL = Model.binary(
    0.3, np.array([0.8, 0.62, 0.9, 0.55, 0.71]), np.array([0.7, 0.93, 0.6, 0.75, 0.38])
)
PATTERNS = np.array(list(product((-1, 0, 1), repeat=5)), dtype=np.int8)
LABELS = {
    "numbers": (0, 1),
    "signs": (-1, 1),
    "truth": (False, True),
    "fractions": (0.5, 1e300),
    "text": ("no", "yes"),
    "quotes": ("it isn't", 'it "is"'),
    "odd text": ("x\\", "ß − ✓\n${HOME} `\\n"),
    "bytes": (b"\x00n", b"y'\xff"),
}


def grouped_rule():
    base = posterior_rule(MODEL)
    weights = base.weights.copy()
    weights[[1, 4, 2]] = 0.0
    random = np.random.default_rng(7)
    groups = (
        Together((4, 1), random.normal(size=(9, 2))),
        Together((2,), random.normal(size=(3, 2))),
    )
    return Rule(base.intercept, weights, None, groups)


RULES = {
    "posterior": posterior_rule(MODEL),
    "far from even": Rule(np.array([0.0, -3e4]), 4e4 * posterior_rule(MODEL).weights),
    "tempered": tempered_rule(MODEL, 0.4, -0.1, 2.0),
    "groups": grouped_rule(),
}


def wanted(rule, codes):
    votes = read_votes(codes, classes=(0, 1), missing=-1, classifiers=NAMES)
    return answer(rule, votes, label=False, probability=True).probabilities


def frame_of(codes, labels):
    values = [*labels, None]
    return pl.DataFrame(
        {name: [values[code] for code in codes[:, i]] for i, name in enumerate(NAMES)}
    )


# --- executed ---------------------------------------------------------------------------------


def in_duckdb(expression, frame):
    with duckdb.connect() as engine:
        return engine.from_arrow(frame.to_arrow()).project(f"{expression} AS p").fetchnumpy()["p"]


@pytest.fixture(scope="module")
def database():
    """A cursor in a real PostgreSQL."""
    reason = postgres.reason_for_none()
    if reason:
        pytest.skip(reason)
    import psycopg

    with postgres.server() as address, psycopg.connect(address) as connection:
        yield connection.cursor()


TYPES = {
    pl.Int64: "bigint",
    pl.Float64: "double precision",
    pl.Boolean: "boolean",
    pl.String: "text",
    pl.Binary: "bytea",
}


def in_postgres(database, expression, frame):
    """Rows of a real table, so that nothing is computed while the statement is planned."""
    from psycopg import sql as words

    kinds = [TYPES[kind] for kind in frame.dtypes]
    columns = words.SQL(", ").join(
        words.SQL("{} {}").format(words.Identifier(name), words.SQL(kind))
        for name, kind in zip(frame.columns, kinds, strict=True)
    )
    database.execute(words.SQL("CREATE TEMP TABLE votes (place int, {})").format(columns))
    try:
        places = ", ".join(["%s"] * (1 + len(kinds)))
        rows = [(place, *row) for place, row in enumerate(frame.iter_rows())]
        database.executemany(f"INSERT INTO votes VALUES ({places})", rows)  # noqa: S608 (our own)
        database.execute(f"SELECT {expression} FROM votes ORDER BY place")  # noqa: S608 (what is tested)
        return np.array([row[0] for row in database.fetchall()], dtype=np.float64)
    finally:
        database.execute("DROP TABLE votes")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("dialect", ["ansi", "duckdb"])
def test_duckdb_gives_the_probability(dialect, labels, rule):
    if (dialect, labels) == ("ansi", "bytes"):
        pytest.skip("DuckDB has no standard literal for bytes")
    frame = frame_of(PATTERNS, LABELS[labels])
    found = in_duckdb(sql(RULES[rule], NAMES, LABELS[labels], dialect), frame)
    assert np.abs(found - wanted(RULES[rule], PATTERNS)).max() < 1e-12


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("labels", LABELS)
def test_postgres_gives_the_probability(database, labels, rule):
    frame = frame_of(PATTERNS, LABELS[labels])
    expression = sql(RULES[rule], NAMES, LABELS[labels], "postgres")
    found = in_postgres(database, expression, frame)
    assert np.abs(found - wanted(RULES[rule], PATTERNS)).max() < 1e-12


@pytest.mark.parametrize("labels", LABELS)
def test_spark_gives_the_probability(spark_session, labels):
    frame = frame_of(PATTERNS, LABELS[labels]).with_row_index("place").cast({"place": pl.Int64})
    expression = sql(RULES["groups"], NAMES, LABELS[labels], "spark")
    there = spark_session.createDataFrame(frame.to_arrow()).repartition(3)
    found = pl.from_arrow(there.selectExpr("place", f"{expression} AS p").toArrow())
    assert np.abs(found.sort("place")["p"] - wanted(RULES["groups"], PATTERNS)).max() < 1e-12


def test_postgres_reads_backslashes_alike_however_it_is_set(database):
    labels = ("x\\", "\\n'")
    expression = sql(RULES["posterior"], NAMES, labels, "postgres")
    frame = frame_of(PATTERNS, labels)
    database.execute("SET standard_conforming_strings = off")
    try:
        found = in_postgres(database, expression, frame)
    finally:
        database.execute("RESET standard_conforming_strings")
    assert np.abs(found - wanted(RULES["posterior"], PATTERNS)).max() < 1e-12


def test_an_estimates_sql_is_its_probability_in_postgres(database):
    psi, eta = np.linspace(0.6, 0.9, 5), np.linspace(0.8, 0.7, 5)
    drawn = simulate.votes(500, sensitivity=psi, specificity=eta, missing=0.2, seed=8)
    frame = frame_of(drawn.votes, ("ham", "spam"))
    estimate = lf.estimate(frame, positive="ham")
    found = in_postgres(database, estimate.sql("postgres"), frame)
    expected = estimate.probability(frame)["probability"].to_numpy()
    assert np.abs(found - expected).max() < 1e-12


# --- spelled ----------------------------------------------------------------------------------

# What the manuals of the engines that the tests cannot start say of a literal, read back plainly.
ESCAPES = {"n": "\n", "r": "\r", "u0024": "$"}


def read_with_escapes(literal, quote):
    """The text of a literal in which a backslash stands before a letter or four digits."""
    assert literal[0] == literal[-1] == quote
    inside = literal[1:-1]
    tokens = re.findall(r"\\u[0-9a-f]{4}|\\.|[^\\]", inside, re.DOTALL)
    assert "".join(tokens) == inside
    assert quote not in tokens
    return "".join(ESCAPES.get(t[1:], t[1:]) if t[0] == "\\" else t for t in tokens)


def read_doubled(literal, quote):
    inside = literal[1:-1]
    assert literal[0] == literal[-1] == quote
    assert quote not in inside.replace(quote * 2, "")
    return inside.replace(quote * 2, quote)


ODD = st.text(alphabet=st.sampled_from("ab'\"`\\\n\r${}ß0")) | st.text()


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake"])
@given(text=ODD)
def test_text_reads_back_where_a_backslash_escapes(dialect, text):
    literal = DIALECTS[dialect].literal(text)
    assert read_with_escapes(literal, "'") == text
    assert "\n" not in literal  # which BigQuery refuses
    assert dialect != "spark" or "${" not in literal


@given(text=ODD)
def test_text_reads_back_where_only_quotes_are_doubled(text):
    for dialect in ("ansi", "duckdb"):
        assert read_doubled(DIALECTS[dialect].literal(text), "'") == text


@given(name=ODD)
def test_names_read_back(name):
    for dialect in ("ansi", "postgres", "duckdb", "snowflake"):
        assert read_doubled(DIALECTS[dialect].name(name), '"') == name
    assert read_doubled(DIALECTS["spark"].name(name), "`") == name
    assert read_with_escapes(DIALECTS["bigquery"].name(name), "`") == name


@pytest.mark.parametrize("dialect", DIALECTS)
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_exactly(dialect, number):
    spelled = DIALECTS[dialect].number(number)
    assert float(re.sub(r"::\w+$|D$", "", spelled)) == number
    assert "e" in spelled or spelled.endswith("::float8")  # approximate: no decimal arithmetic


def test_labels_are_spelled_by_their_kind():
    spelled = {
        True: "TRUE",
        np.False_: "FALSE",
        3: "3",
        np.int8(-1): "-1",
        np.float64(0.5): "0.5",
        Decimal("1E+2"): "100",
    }
    for dialect in DIALECTS.values():
        assert [dialect.literal(label) for label in spelled] == list(spelled.values())
    octets = {name: dialect.literal(b"a\xff") for name, dialect in DIALECTS.items()}
    assert octets == {
        "ansi": "X'61FF'",
        "postgres": "'\\x61ff'::bytea",
        "duckdb": "'\\x61\\xff'::BLOB",
        "spark": "X'61FF'",
        "bigquery": "b'\\x61\\xff'",
        "snowflake": "X'61FF'",
    }


def test_an_expression_is_one_dialects_throughout():
    for dialect, mark in {
        "spark": "`count`",
        "bigquery": "`count`",
        "snowflake": '"count"',
    }.items():
        expression = sql(RULES["groups"], NAMES, ("no", "yes"), dialect)
        assert mark in expression
        assert expression.count("(") == expression.count(")")
    assert sql(RULES["groups"], NAMES, (0, 1)) == sql(RULES["groups"], NAMES, (0, 1), "ansi")


@pytest.mark.parametrize("dialect", ["oracle", "", 3, ["spark"], "ANSI"])
def test_a_dialect_that_there_is_not_is_refused_in_a_sentence(dialect):
    said = "dialect= must be one of ansi, postgres"
    refused(lambda: dialect_of(dialect), said, error=lf.OptionsError)
