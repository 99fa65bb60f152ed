"""How soon an imbalance is seen after a restart, whether it is counted rightly, and what batches leave of it.

Four real brokers, 400 partitions, and a ``headroom watch`` at its own default pace. One broker after another is killed
and restarted: the first as soon as the watch tells of a balance at all, while its JVMs still compile what they run
(``imbalance_seen_cold_ticks``), the others once it has run for three minutes. The imbalance is there once Kafka tells
every replica in sync again, and seen once ``gold/leader_imbalance`` can be read to say just that of every broker: what
an independent client counts in Kafka's metadata, by Kafka's definition. Then ``headroom elections --execute`` puts it
right.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.groups.elections.latency import BROKERS, elect_in_batches, make_topic, restart
from benchmarks.results import Figure
from cli.common.watch_process import WatchProcess
from schemas.config import CollectSettings
from schemas.tables import LEADER_IMBALANCE
from streaming.delta.query_table import query

# By broker: partitions that prefer it, and those of them that another leads.
Counts = Mapping[int, tuple[int, int]]

_SEEN_S = 120.0
_WARM_S = 180.0
_NEWEST = """SELECT broker, preferred_partitions, non_preferred_partitions, electable_now FROM data
    WHERE tick_ms = (SELECT max(tick_ms) FROM data) ORDER BY broker"""


def measure_imbalance(on_progress: OnProgress) -> list[Figure]:
    """Return the figures over one restart and BENCH_ELECTION_ROUNDS more (default 3), the worst of each.

    Raises:
        HeadroomError: the imbalance was not seen as it is, or a scene could not be set.
    """
    rounds = int(os.environ.get("BENCH_ELECTION_ROUNDS", "3"))
    interval_s = CollectSettings().interval_s
    delays_s, after = [], []
    with BenchCluster(BROKERS) as bench:
        bench.configure(interval_s)
        make_topic(bench)
        with bench.watch() as watch:
            warm_s = time.monotonic() + _WARM_S
            table = NewestTick(bench.store)
            # The watch makes a topic of its own.
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
                    f"broker {broker} restarted: {text} led by others, seen {delays_s[-1]:.1f} s after it was there; "
                    f"after the batches at most {after[-1]:.1%}"
                )
                time.sleep(max(0.0, warm_s - time.monotonic()))
    return [
        Figure("imbalance_seen_ticks", max(delays_s[1:]) / interval_s, "ticks", rounds),
        Figure("imbalance_seen_cold_ticks", delays_s[0] / interval_s, "ticks", 1),
        Figure("imbalance_after_batches_ratio", max(after), "ratio", 1 + rounds),
    ]


def count_leaders(bench: BenchCluster) -> dict[int, tuple[int, int]]:
    """Return Kafka's own count for every broker that is preferred for anything, over all topics."""
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
    """What the newest tick in ``gold/leader_imbalance`` says.

    The table is read when it has a new commit, so that the measurement leaves the processors to what is measured.

    Args:
        store: folder of the tables.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self._log = Path(store, LEADER_IMBALANCE.path, "_delta_log")
        self._commit = ""
        self._counts: Counts = {}

    def counts(self) -> Counts:
        """Return the counts; of a broker of which something is not electable -1. Without a table: nothing."""
        commit = max((path.name for path in self._log.glob("*.json")), default="")
        if commit != self._commit:
            rows = query(self._store, LEADER_IMBALANCE.path, _NEWEST) or []
            self._counts = {row["broker"]: (row["preferred_partitions"], _electable_count(row)) for row in rows}
            self._commit = commit
        return self._counts


def _await_counts(table: NewestTick, watch: WatchProcess, expected: Counts) -> float:
    """Return after how many seconds the table says what is wanted, all of it electable."""
    began_s = time.monotonic()
    _await(lambda: table.counts() == expected, watch, table, f", not {dict(expected)}")
    return time.monotonic() - began_s


def _await(condition: Callable[[], bool], watch: WatchProcess, table: NewestTick, expected: str = "") -> None:
    give_up_s = time.monotonic() + _SEEN_S
    while not condition():
        watch.require_running()
        if time.monotonic() > give_up_s:
            raise failure(f"{_SEEN_S:.0f} s later the table says {dict(table.counts())}{expected}")
        time.sleep(0.05)


def _electable_count(row: Mapping[str, int]) -> int:
    return row["non_preferred_partitions"] if row["electable_now"] == row["non_preferred_partitions"] else -1
