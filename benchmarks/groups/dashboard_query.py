"""``python -m benchmarks.dashboard STORE NAME CLUSTER FROM_MS``: one query of a dashboard, as any process may ask it.

Prints how many rows came. It is a process of its own so that nothing is warm: no log read, no library loaded.
"""

from __future__ import annotations

import sys

from schemas.tables import FETCHER_LAG, THROTTLE_HEADROOM, Table
from streaming.delta.query_table import query

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
    """Ask and print."""
    store, name, cluster, from_ms = sys.argv[1:5]
    table, sql = QUERIES[name]
    print(len(query(store, table.path, sql.format(cluster=cluster, from_ms=from_ms)) or []))


if __name__ == "__main__":
    main()
