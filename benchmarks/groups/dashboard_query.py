"""``python -m benchmarks.groups.dashboard_query STORE NAME CLUSTER FROM_MS``: run one query of a dashboard.

Prints the number of rows. Each query has a process of its own, so that no table log and no library is loaded before.
"""

from __future__ import annotations

import sys

from headroom.schemas.tables import FETCHER_LAG, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.query_table import query

_WHERE = "FROM data WHERE cluster = '{cluster}' AND tick_ms >= {from_ms}"
QUERIES: dict[str, tuple[Table, str]] = {
    "headroom": (
        THROTTLE_HEADROOM,
        f"SELECT tick_ms, broker, role, verdict, required_bytes_per_s, headroom_bytes_per_s {_WHERE} ORDER BY tick_ms",
    ),
    "lag": (
        FETCHER_LAG,
        f"SELECT tick_ms, broker, max(lag_offsets) AS lag_offsets {_WHERE} GROUP BY tick_ms, broker ORDER BY tick_ms",
    ),
}


def main() -> None:
    """Run the query, and print the number of rows."""
    store, name, cluster, from_ms = sys.argv[1:5]
    table, sql = QUERIES[name]
    print(len(query(store, table.path, sql.format(cluster=cluster, from_ms=from_ms)) or []))


if __name__ == "__main__":
    main()
