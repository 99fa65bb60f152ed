"""Synthetic ticks through the real topic: encoded beforehand, so that making them costs nothing while it is timed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.workload import WINDOW_MS, Balance, Side, SyntheticCluster
from cluster.encode import Message, encode_rows
from cluster.publisher import Publisher, tick_end
from schemas.config import Settings

_ACK_S = 120.0


@dataclass(frozen=True)
class Prepared:
    """One tick, ready to be sent.

    Attributes:
        tick_ms: its time.
        messages: all but its end.
        truth: the verdict of every broker and role.
        balance: how the leaders of every broker are.
        switched: partitions whose leader switched, as (topic, partition).
        rows: rows in all messages.
    """

    tick_ms: int
    messages: list[Message]
    truth: Mapping[Side, str]
    balance: Mapping[int, Balance]
    switched: Sequence[tuple[str, int]]
    rows: int

    @property
    def size_bytes(self) -> int:
        """The size of the messages before compression."""
        return sum(len(message.value) for message in self.messages)


def prepare(cluster: SyntheticCluster, count: int) -> list[Prepared]:
    """Return so many ticks of a cluster."""
    prepared = []
    for tick in cluster.ticks(count):
        messages = encode_rows(cluster.workload.cluster, tick.tick_ms, tick)
        rows = sum(tick.row_counts().values())
        prepared.append(Prepared(tick.tick_ms, messages, dict(tick.truth), tick.balance, list(tick.switched), rows))
    return prepared


class Feed:
    """Publishes prepared ticks as the collector would.

    Args:
        settings: where the topic is.
        cluster: name of the cluster in the ticks.
    """

    def __init__(self, settings: Settings, cluster: str) -> None:
        self._cluster = cluster
        self._interval_ms = round(settings.collect.interval_s * 1000)
        self._publisher = Publisher(settings, _ACK_S)
        self._publisher.open()
        self.ended_s: dict[int, float] = {}

    def send(self, tick: Prepared) -> None:
        """Publish a tick; when its end was acknowledged stands in ``ended_s`` then, by ``tick_ms``.

        Raises:
            PublishError: a message was not acknowledged.
        """
        sent = self._publisher.send(tick.messages)
        end = tick_end(
            sent,
            started_ms=tick.tick_ms,
            ended_ms=tick.tick_ms,
            interval_ms=self._interval_ms,
            rate_window_ms=WINDOW_MS,
        )
        self._publisher.send_end(self._cluster, tick.tick_ms, len(tick.messages), end)
        self.ended_s[tick.tick_ms] = time.monotonic()

    def close(self) -> None:
        """Disconnect."""
        self._publisher.close()
