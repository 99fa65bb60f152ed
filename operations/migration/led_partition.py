"""One partition that is asked at its leader, also after another broker has become that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.operations.migration.clusters import recreated_error
from headroom.planning.migration.readings import LogOffsets, MigratingTopic
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# How long and how often a leader is looked for: after a broker was killed, a switch takes some 10 s.
PATIENCE_S, _PAUSE_S = 30.0, 1.0
_MOST_TRIES = round(PATIENCE_S / _PAUSE_S) + 1
_Asked = Mapping[str, MigratingTopic]
_T = TypeVar("_T")


class LedPartition:
    """A partition of a cluster, and its leader.

    Args:
        cluster: the cluster.
        topic: the topic, as it was described at the start.
        name: name of the partition on that cluster.
        wait: waits for the given seconds.
    """

    def __init__(
        self,
        cluster: MigrationCluster,
        topic: MigratingTopic,
        name: TopicPartition,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self.cluster = cluster
        self.name = name
        self._topic_id = topic.topic_id
        self._topic = self._alone(topic)
        self._wait = wait

    def range(self, committed: bool) -> tuple[int, int]:
        """Return the offsets of its log, the end exclusive.

        Args:
            committed: whether it ends before the first open transaction.

        Raises:
            HeadroomError: no leader reported them in time, or the topic was deleted or recreated.
        """
        return self._ask(lambda topics: self._range(topics, committed), "has an unknown log end")

    def offset_at(self, time_ms: int) -> int | None:
        """Return the offset of the first record with a timestamp from a time on; None without one.

        Args:
            time_ms: time, epoch milliseconds.

        Raises:
            HeadroomError: no leader reported it in time, or the topic was deleted or recreated.
        """
        return self._ask(
            lambda topics: self.cluster.offset_at(topics, self.name, time_ms), "has an unknown offset of a time"
        )

    def _range(self, topics: _Asked, committed: bool) -> tuple[int, int]:
        log = self.cluster.log_offsets(topics).get(self.name, LogOffsets())
        end = log.stable if committed else log.end
        if log.start is None or end is None:
            raise HeadroomError(str(self.name), "has an unknown log", "See that it has a leader.")
        return log.start, max(log.start, end)

    def _ask(self, ask: Callable[[_Asked], _T], rule: str) -> _T:
        until_s, tries = time.monotonic() + PATIENCE_S, 0
        while True:
            tries += 1
            with suppress(HeadroomError):
                return ask({self.name.topic: self._topic})
            # A broker that hangs takes all the time for one answer.
            if tries == _MOST_TRIES or (tries > 1 and time.monotonic() > until_s):
                rule = f"{rule}: no leader reported it within {PATIENCE_S:g} s"
                remedy = "See that it has a leader, then run it again."
                raise HeadroomError(f"{self.name} on {self.cluster.subject}", rule, remedy)
            if tries > 1:
                self._wait(_PAUSE_S)
            self._find_leader()

    def _find_leader(self) -> None:
        """Ask who leads the partition now; if that is not known, the broker of before is asked again."""
        topic = self.name.topic
        try:
            found = self.cluster.topics([topic]).topics.get(topic)
        except HeadroomError:
            return
        if found is None:
            return
        if found.topic_id != self._topic_id:
            raise recreated_error(topic, self.cluster.subject)
        self._topic = self._alone(found)

    def _alone(self, topic: MigratingTopic) -> MigratingTopic:
        """Return a topic with this partition alone: it may have thousands, which are asked one after another."""
        return replace(topic, leaders={self.name.partition: topic.leaders.get(self.name.partition)})
