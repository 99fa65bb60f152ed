"""Delay until an imbalance after a restart is in the table, whether it is counted right, and what batches leave of it.

Four real brokers run 400 partitions and a ``headroom watch`` at its default interval. One broker after another is
killed and restarted: the first one as soon as the watch has written a balance, while its JVMs still compile
(``imbalance_seen_cold_ticks``), the others after the watch has run for three minutes.

The delay begins when Kafka reports all replicas in sync again. It ends when ``gold/leader_imbalance`` shows, for every
broker, the same counts as an independent client computes from Kafka's metadata. Then ``headroom elections --execute``
elects the preferred leaders.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.groups.elections.latency import BROKERS, elect_in_batches, make_topic, restart
from benchmarks.results import Figure
from headroom.cli.common.watch_process import WatchProcess
from headroom.schemas.config import CollectSettings
from headroom.schemas.tables import LEADER_IMBALANCE
from headroom.streaming.delta.query_table import query

# By broker: partitions it is the preferred leader of, and those of them that others lead.
Counts = Mapping[int, tuple[int, int]]

_TABLE_S = 120.0
_WARM_S = 180.0
_NEWEST = """SELECT broker, preferred_partitions, non_preferred_partitions, electable_now FROM data
    WHERE tick_ms = (SELECT max(tick_ms) FROM data) ORDER BY broker"""


def measure_imbalance(rounds: int, on_progress: OnProgress) -> list[Figure]:
    """Return the worst figures over one restart and some rounds more.

    Raises:
        HeadroomError: the table did not show the right counts in time, or a broker did not restart.
    """
    interval_s = CollectSettings().interval_s
    delays_s, after = [], []
    with BenchCluster(BROKERS) as bench:
        bench.configure(interval_s)
        make_topic(bench)
        with bench.watch() as watch:
            warm_s = time.monotonic() + _WARM_S
            table = NewestTick(bench.store)
            # The watch creates the ticks topic, which the first counts must include.
            _await(lambda: table.counts() != {} and table.counts() == count_leaders(bench), watch, table)
            for number in range(1 + rounds):
                broker = 1 + number % BROKERS
                restart(bench, broker)
                imbalance = count_leaders(bench)
                delays_s.append(_await_counts(table, watch, imbalance))
                elect_in_batches(bench)
                left = count_leaders(bench)
                after.append(max(non_preferred / preferred for preferred, non_preferred in left.values()))
                _await_counts(table, watch, left)
                text = ", ".join(f"{non_preferred} of {preferred}" for preferred, non_preferred in imbalance.values())
                on_progress(
                    f"broker {broker} restarted: {text} led by others, in the table {delays_s[-1]:.1f} s later; "
                    f"after the batches at most {after[-1]:.1%}"
                )
                time.sleep(max(0.0, warm_s - time.monotonic()))
    return [
        Figure("imbalance_seen_ticks", max(delays_s[1:]) / interval_s, "ticks", rounds),
        Figure("imbalance_seen_cold_ticks", delays_s[0] / interval_s, "ticks", 1),
        Figure("imbalance_after_batches_ratio", max(after), "ratio", 1 + rounds),
    ]


def count_leaders(bench: BenchCluster) -> dict[int, tuple[int, int]]:
    """Return by broker its preferred partitions and those led by others, over all topics, by Kafka's definition."""
    preferred: Counter[int] = Counter()
    non_preferred: Counter[int] = Counter()
    admin = bench.connect()
    try:
        for topic in admin.describe_topics():
            for partition in topic["partitions"]:
                first = partition["replica_nodes"][0]
                preferred[first] += 1
                non_preferred[first] += partition["leader_id"] not in (first, -1)
    finally:
        with suppress(KafkaError):
            admin.close()
    return {broker: (preferred[broker], non_preferred[broker]) for broker in sorted(preferred)}


class NewestTick:
    """Counts of the newest tick in ``gold/leader_imbalance``.

    The table is read only after a new commit, to leave the CPU to the measured processes.

    Args:
        store: folder of the tables.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self._log = Path(store, LEADER_IMBALANCE.path, "_delta_log")
        self._commit = ""
        self._counts: Counts = {}

    def counts(self) -> Counts:
        """Return the counts by broker, -1 if some partitions are not electable; nothing without a table."""
        commit = max((path.name for path in self._log.glob("*.json")), default="")
        if commit != self._commit:
            rows = query(self._store, LEADER_IMBALANCE.path, _NEWEST) or []
            counts: dict[int, tuple[int, int]] = {}
            for row in rows:
                count = row["non_preferred_partitions"]
                counts[row["broker"]] = (row["preferred_partitions"], count if row["electable_now"] == count else -1)
            self._counts, self._commit = counts, commit
        return self._counts


def _await_counts(table: NewestTick, watch: WatchProcess, expected: Counts) -> float:
    """Return the seconds until the table has the expected counts, all of them electable."""
    began_s = time.monotonic()
    _await(lambda: table.counts() == expected, watch, table, f", not {dict(expected)}")
    return time.monotonic() - began_s


def _await(condition: Callable[[], bool], watch: WatchProcess, table: NewestTick, expected: str = "") -> None:
    deadline_s = time.monotonic() + _TABLE_S
    while not condition():
        watch.require_running()
        if time.monotonic() > deadline_s:
            raise failure(f"{_TABLE_S:.0f} s later the table shows {dict(table.counts())}{expected}")
        time.sleep(0.05)
