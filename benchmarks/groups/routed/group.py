"""Group ``routed``: what clients of the routing library cost, and what they notice of a switch.

Two clusters of three brokers, a topic of four partitions with three replicas on both (``min.insync.replicas`` 2),
records of 1 kB.

**Throughput.** The same records are written, and then read, with kafka-python and with ``RoutedProducer`` and
``RoutedConsumer``, in turn; the order changes with each round. ``routed_write_ratio`` and ``routed_read_ratio`` are
records per second when routed, divided by those of kafka-python, the median of all rounds. Each is the worse one of
two: with ``_below`` all records are below the end offset, and with ``_beyond`` all are on the target.

**Switches.** One routed producer writes 200 records a second to each partition, with ``acks=all`` and without waiting.
Their end offset is agreed 10 s ahead. ``switch_p99_ratio`` is the 99th percentile of the time from ``send`` to the
acknowledgement in the 10 s around a switch, divided by that of the 10 s before, over all switches.
``switch_pause_ms_p99`` and ``_max`` are of the longest time in which a partition got no acknowledgement in the 10 s
around its switch.

``--parts`` chooses some of the parts ``throughput`` and ``switches``.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.routed.routed_topics import routed_topics
from benchmarks.groups.routed.switches import switch_figures
from benchmarks.groups.routed.throughput import throughput_figures
from benchmarks.options.fields import AT_LEAST_ONE, option, parts_option
from benchmarks.results import Figure


@dataclass(frozen=True)
class RoutedOptions:
    """Options of the group ``routed``."""

    parts: tuple[str, ...] = parts_option("throughput", "switches")
    records: int = option(50_000, AT_LEAST_ONE, "Records of each measurement of throughput.")
    rounds: int = option(9, AT_LEAST_ONE, "Measurements of each kind.")
    switches: int = option(20, AT_LEAST_ONE, "Topics that switch.")


def measure(on_progress: OnProgress, options: RoutedOptions) -> list[Figure]:
    """Return the figures of the chosen parts.

    Raises:
        HeadroomError: a broker could not be started, or records did not come in time.
    """
    figures = []
    with routed_topics() as topics:
        if "throughput" in options.parts:
            figures += throughput_figures(topics, options.records, options.rounds, on_progress)
        if "switches" in options.parts:
            figures += switch_figures(topics, options.switches, on_progress)
    return figures
