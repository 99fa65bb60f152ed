"""Steps on a DataFrame with expressions as text.

Spark analyses the plan at every step, and each Column made in Python is several calls into the JVM. A prepared query
(``streaming.transforms.prepared``) pays for that once, any other one in every batch. Text and fewer steps take a third
less time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def with_columns(frame: DataFrame, columns: Mapping[str, str], without: Sequence[str] = ()) -> DataFrame:
    """Return the rows with further columns.

    Args:
        frame: rows.
        columns: name to expression. A name that the rows already have must be in ``without``.
        without: columns to drop. One of the new columns may have the same name.
    """
    rest = f"* EXCEPT ({', '.join(without)})" if without else "*"
    return frame.selectExpr(rest, *named_expressions(columns))


def named_expressions(columns: Mapping[str, str]) -> list[str]:
    """Return expressions with their names, for ``selectExpr``."""
    return [f"{expression} AS {name}" for name, expression in columns.items()]


def aggregate_by(frame: DataFrame, keys: Sequence[str], aggregates: Mapping[str, str]) -> DataFrame:
    """Return one row for each combination of the keys.

    Args:
        frame: rows.
        keys: columns.
        aggregates: name to expression.
    """
    return frame.groupBy(*keys).agg(*map(F.expr, named_expressions(aggregates)))


def literal(text: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
