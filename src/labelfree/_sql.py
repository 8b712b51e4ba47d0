"""Names, labels and numbers as each database spells them.

The spelling of a dialect is all that differs: the expressions themselves use nothing but CASE,
comparisons, sums, EXP, GREATEST and LEAST, which every dialect here has.

Sources: SQL:2016 (ANSI) for the default; the pages "Lexical Structure" of PostgreSQL, "Literal Types" of DuckDB,
"Literals" of Spark SQL, "Lexical structure and syntax" of BigQuery, and "String & binary data types" of
Snowflake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from labelfree._errors import OptionsError, listed
from labelfree._labels import Label


@dataclass(frozen=True)
class Dialect:
    """How one database spells what stands in an expression.

    Attributes
    ----------
    name : callable
        Column -> the same as a quoted name.
    text : callable
        Text -> a literal.
    octets : callable
        Bytes -> a literal.
    number : callable
        Float -> a literal in double precision that reads back exactly.
    """

    name: Callable[[str], str]
    text: Callable[[str], str]
    octets: Callable[[bytes], str]
    number: Callable[[float], str]

    def literal(self, label: Label) -> str:
        """Write a label as it stands in the votes: truth value, number, text or bytes."""
        if isinstance(label, bool | np.bool_):
            return "TRUE" if label else "FALSE"
        if isinstance(label, Decimal):
            return f"{label:f}"
        if isinstance(label, int | float | np.number):
            return repr(label.item() if isinstance(label, np.generic) else label)
        return self.octets(label) if isinstance(label, bytes) else self.text(str(label))


def dialect_of(name: Any) -> Dialect:
    """Find a dialect by the option `dialect`; None is standard SQL."""
    if name is None:
        return DIALECTS["ansi"]
    if not isinstance(name, str) or name not in DIALECTS:
        raise OptionsError(f"dialect= must be one of {listed(DIALECTS, 9)}, got {name!r}.")
    return DIALECTS[name]


# --- names ------------------------------------------------------------------------------------


def _double_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _backticked_with_escapes(name: str) -> str:
    return "`" + _escaped(name).replace("`", "\\`") + "`"


# --- labels -----------------------------------------------------------------------------------


def _plain_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _postgres_text(text: str) -> str:
    """A backslash is a letter or an escape, as the server is set; in E'…' it is always an escape."""
    doubled = text.replace("\\", "\\\\")
    return _plain_text(text) if doubled == text else f"E{_plain_text(doubled)}"


def _text_with_escapes(text: str) -> str:
    return "'" + _escaped(text).replace("'", "\\'") + "'"


def _spark_text(text: str) -> str:
    """Spark puts settings in the place of ${…}, also within a literal."""
    return _text_with_escapes(text).replace("${", "\\u0024{")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _hex(octets: bytes) -> str:
    return f"X'{octets.hex().upper()}'"


def _hex_escapes(octets: bytes) -> str:
    return "".join(f"\\x{octet:02x}" for octet in octets)


# --- numbers ----------------------------------------------------------------------------------


def _approximate(number: float) -> str:
    """With an exponent a number is approximate, in double precision; without one it is a decimal."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


DIALECTS = {
    "ansi": Dialect(_double_quoted, _plain_text, _hex, _approximate),
    # Numbers with an exponent are decimals there, too.
    "postgres": Dialect(
        _double_quoted,
        _postgres_text,
        lambda octets: f"'\\x{octets.hex()}'::bytea",
        lambda number: f"{float(number)!r}::float8",
    ),
    "duckdb": Dialect(
        _double_quoted, _plain_text, lambda octets: f"'{_hex_escapes(octets)}'::BLOB", _approximate
    ),
    "spark": Dialect(_backticked, _spark_text, _hex, lambda number: f"{_approximate(number)}D"),
    "bigquery": Dialect(
        _backticked_with_escapes,
        _text_with_escapes,
        lambda octets: f"b'{_hex_escapes(octets)}'",
        _approximate,
    ),
    "snowflake": Dialect(
        _double_quoted, _text_with_escapes, _hex, lambda number: f"{_approximate(number)}::FLOAT"
    ),
}
