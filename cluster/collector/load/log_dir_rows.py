"""Rows of the log directories of a broker and of the logs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headroom.cluster.collector.rows.columns import Row
from headroom.cluster.metrics.load_meters import LOG_DIRS_TOTAL, LOG_DIRS_USABLE, LOG_DIRS_USED
from headroom.cluster.model import Meter, Reading
from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.planning.reassignments.room.volumes import volumes_of
from headroom.schemas.bounds import MOST_COUNTED, MOST_OF_LOG
from headroom.schemas.tick_messages import column_types

REPLICA_SIZES = tuple(column_types("replica_sizes"))


def log_dir_rows(logs: BrokerLogs, read_ms: int) -> list[Row]:
    """Return the rows of the kind ``log_dirs`` of a broker.

    Args:
        logs: log directories of the broker.
        read_ms: time of the reading, epoch milliseconds.
    """
    return [
        {
            "broker": logs.broker,
            "read_ms": read_ms,
            "log_dir": directory.path,
            "total_bytes": _possible(directory.total_bytes, MOST_COUNTED),
            "usable_bytes": _possible(directory.usable_bytes, MOST_COUNTED),
            "offline": directory.offline,
            "cordoned": directory.cordoned,
        }
        for directory in logs.directories
    ]


def replica_size_columns(logs: BrokerLogs, read_ms: int) -> Mapping[str, Sequence[Any]]:
    """Return the columns of the kind ``replica_sizes`` of a broker: current logs, then future ones."""
    every = [*logs.logs.items(), *logs.futures.items()]
    return {
        "broker": [logs.broker] * len(every),
        "topic": [name.topic for name, _ in every],
        "partition": [name.partition for name, _ in every],
        "read_ms": [read_ms] * len(every),
        "log_dir": [log.path for _, log in every],
        "size_bytes": [_possible(log.size_bytes, MOST_OF_LOG) for _, log in every],
        "lag_offsets": [_possible(log.offset_lag, MOST_OF_LOG) for _, log in every],
        "is_future": [False] * len(logs.logs) + [True] * len(logs.futures),
    }


def log_dir_gauges(logs: BrokerLogs, read_ms: int) -> dict[Meter, Reading]:
    """Return the bytes of all logs of a broker, and free and all bytes of its volumes, without sums that are unknown.

    Args:
        logs: log directories of the broker.
        read_ms: time of the reading, epoch milliseconds.
    """
    sizes = [_possible(log.size_bytes, MOST_OF_LOG) for log in (*logs.logs.values(), *logs.futures.values())]
    online = volumes_of(directory for directory in logs.directories if not directory.offline)
    sums = {LOG_DIRS_USED: _sum(sizes)}
    if online:
        sums[LOG_DIRS_USABLE] = _sum([_possible(volume.usable_bytes, MOST_OF_LOG) for volume in online])
        sums[LOG_DIRS_TOTAL] = _sum([_possible(volume.total_bytes, MOST_OF_LOG) for volume in online])
    return {
        meter: Reading(read_ms, total) for meter, total in sums.items() if total is not None and total <= MOST_OF_LOG
    }


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _possible(value: int | None, most: int) -> int | None:
    """Return a number; None if it is none that a broker can mean."""
    return value if value is not None and 0 <= value <= most else None
