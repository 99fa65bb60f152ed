"""How soon an imbalance is seen after a restart, whether it is counted rightly, and what batches leave of it.

Four real brokers, 400 partitions, and a ``headroom watch`` at its own default pace. One broker after another is killed
and restarted. The imbalance is there once Kafka tells every replica in sync again, and seen once
``gold/leader_imbalance`` can be read to say just that of every broker: what an independent client counts in Kafka's
metadata, by Kafka's definition. Then ``headroom elections --execute`` puts it right.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from kafka.errors import KafkaError

from benchmarks.election_latency import BROKERS, elect_in_batches, make_topic, restart
from benchmarks.harness import Ground, Say, failure
from benchmarks.results import Figure
from cli.tables import query
from cli.watch_process import WatchProcess
from schemas.config import CollectSettings
from schemas.tables import LEADER_IMBALANCE

# By broker: partitions that prefer it, and those of them that another leads.
Counts = Mapping[int, tuple[int, int]]

_SEEN_S = 120.0
_NEWEST = """SELECT broker, preferred_partitions, non_preferred_partitions, electable_now FROM data
    WHERE tick_ms = (SELECT max(tick_ms) FROM data) ORDER BY broker"""


def measure_imbalance(say: Say) -> list[Figure]:
    """Return the figures over BENCH_ELECTION_ROUNDS restarts (default 3), the worst of each.

    Raises:
        HeadroomError: the imbalance was not seen as it is, or a scene could not be set.
    """
    rounds = int(os.environ.get("BENCH_ELECTION_ROUNDS", "3"))
    interval_s = CollectSettings().interval_s
    seen_s, after = [], []
    with Ground(BROKERS) as ground:
        ground.configure(interval_s)
        make_topic(ground)
        with ground.watch() as watch:
            # The watch makes a topic of its own.
            _await(lambda: _told(ground) == counted(ground), watch, lambda: f"the table says {_told(ground)}")
            for number in range(rounds):
                broker = 1 + number % BROKERS
                restart(ground, broker)
                imbalance = counted(ground)
                seen_s.append(_await_seen(ground, watch, imbalance))
                elect_in_batches(ground)
                left = counted(ground)
                after.append(max(away / preferred for preferred, away in left.values()))
                _await_seen(ground, watch, left)
                told = ", ".join(f"{away} of {preferred}" for preferred, away in imbalance.values())
                say(
                    f"broker {broker} restarted: {told} led by others, seen {seen_s[-1]:.1f} s after it was there; "
                    f"after the batches at most {after[-1]:.1%}"
                )
    return [
        Figure("imbalance_seen_ticks", max(seen_s) / interval_s, "ticks", rounds),
        Figure("imbalance_after_batches_ratio", max(after), "ratio", rounds),
    ]


def counted(ground: Ground) -> dict[int, tuple[int, int]]:
    """Return Kafka's own count for every broker that is preferred for anything, over all topics."""
    preferred: Counter[int] = Counter()
    away: Counter[int] = Counter()
    admin = ground.connect()
    try:
        for topic in admin.describe_topics():
            for partition in topic["partitions"]:
                first = partition["replica_nodes"][0]
                preferred[first] += 1
                away[first] += partition["leader_id"] not in (first, -1)
    finally:
        with suppress(KafkaError):
            admin.close()
    return {broker: (preferred[broker], away[broker]) for broker in sorted(preferred)}


def _await_seen(ground: Ground, watch: WatchProcess, wanted: Counts) -> float:
    """Return after how many seconds the table says what is wanted, all of it electable."""
    began_s = time.monotonic()
    _await(lambda: _told(ground) == wanted, watch, lambda: f"the table says {_told(ground)}, not {dict(wanted)}")
    return time.monotonic() - began_s


def _await(condition: Callable[[], bool], watch: WatchProcess, otherwise: Callable[[], str]) -> None:
    give_up_s = time.monotonic() + _SEEN_S
    while not condition():
        watch.require_running()
        if time.monotonic() > give_up_s:
            raise failure(f"{_SEEN_S:.0f} s later {otherwise()}")
        time.sleep(0.05)


def _told(ground: Ground) -> dict[int, tuple[int, int]]:
    """Return what the newest tick in the table says; a broker of which something is not electable says -1."""
    rows = query(ground.store, LEADER_IMBALANCE.path, _NEWEST) or []
    return {row["broker"]: (row["preferred_partitions"], _electable(row)) for row in rows}


def _electable(row: Mapping[str, int]) -> int:
    return row["non_preferred_partitions"] if row["electable_now"] == row["non_preferred_partitions"] else -1
