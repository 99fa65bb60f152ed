"""Follows the topics of agreements and offset syncs, and reads both clusters, each apart from the ticks on a thread.

The origin may be dead, or hang. Then its thread waits, and no tick does: the rows have the last reading while it is
recent, and a reason afterwards.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.migration.passed_ends import PassedEnds
from headroom.cluster.collector.migration.rows import ClusterFacts, MigrationFacts, is_mirrored, migration_rows
from headroom.cluster.collector.migration.seen_ends import SeenEnds
from headroom.cluster.collector.migration.sync_follower import SyncFollower
from headroom.cluster.collector.migration.sync_rows import sync_rows
from headroom.cluster.migration.agreements import new_agreement_reader
from headroom.cluster.migration.cluster_reader import (
    ClusterReader,
    ClusterReading,
    wanted_on_origin,
    wanted_on_target,
)
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.planning.migration.agreement import EndsByEpoch, acknowledged_ends
from headroom.planning.migration.mirrors.sync_record import SyncReading
from headroom.planning.migration.mirrors.sync_trail import SyncTrails
from headroom.routing.agreement import AgreementReader
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement, RouterReport
from headroom.schemas.threads import run_in_daemon_thread

log = logging.getLogger(__name__)
# Time between the readings of a rate: of logs, and of groups, which commit every 5 s by default.
_RATE_S, _GROUP_RATE_S = 10.0, 30.0
# Readings that are kept for rates are at least this far apart.
_KEEP_EVERY_S = 2.0
# A reading that is older is none any more.
_STALE_S, _STALE_TICKS = 5.0, 3
# Until the agreement topic exists it is looked for this often, because that asks for all topics.
_LOOK_S = 10.0
_AGREEMENT_S = 5.0
_T = TypeVar("_T")
Agreements = tuple[tuple[PartitionAgreement, ...], Mapping[str, RouterReport]]


class Background(Generic[_T]):
    """Repeats a call on a daemon thread, one at a time, and keeps its last result.

    Args:
        what: what is read, for the log.
        clock: clock of the results.

    Attributes:
        result: last result; None without one.
        at_s: when it was there, elapsed seconds.
        error: why the last call failed; empty if it did not.
    """

    def __init__(self, what: str, clock: Clock) -> None:
        self._what = what
        self._clock = clock
        self._running: Future[_T] | None = None
        self.result: _T | None = None
        self.at_s = 0.0
        self.error = ""

    def start(self, call: Callable[[], _T]) -> None:
        """Start a call, unless one is running."""
        if self._running is None:
            self._running = run_in_daemon_thread(self._what, call)

    def take(self) -> bool:
        """Return whether a call has succeeded since this was last asked, and keep its result."""
        if self._running is None or not self._running.done():
            return False
        ended, self._running = self._running, None
        error = ended.exception()
        if error is None:
            self.result, self.at_s, self.error = ended.result(), self._clock.elapsed_s(), ""
            return True
        text = str(error) if isinstance(error, HeadroomError) else type(error).__name__
        if text != self.error:
            log.warning("%s could not be read: %s", self._what, text)
        self.error = text
        return False

    def recent(self, within_s: float) -> _T | None:
        """Return the last result; None if it is older."""
        return self.result if self._clock.elapsed_s() - self.at_s <= within_s else None


class MigrationCollector:
    """Reads the migrations to the watched cluster.

    Args:
        settings: all settings, with ``[migration.origin]``.
        clock: clock of the readings.
        origin: reads the origin; None: as the settings say.
        target: reads the target; None: as the settings say.
        agreements: reads the agreement topic to its end; None: on the watched cluster.
        syncs: follows MirrorMaker's offset syncs; None: between the clusters of the settings.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        origin: ClusterReader | None = None,
        target: ClusterReader | None = None,
        agreements: Callable[[], Agreements] | None = None,
        syncs: SyncFollower | None = None,
    ) -> None:
        migration = settings.migration
        self._clock = clock
        self._slip_ratio = settings.alerts.slip_ratio
        self._stale_s = max(_STALE_S, _STALE_TICKS * settings.collect.interval_s)
        groups, own = migration.group_names(), settings.cluster
        self._origin_reader = origin or ClusterReader(
            lambda: MigrationCluster(migration.origin, migration.origin.name), clock.elapsed_s, clock.now_ms, groups
        )
        self._target_reader = target or ClusterReader(
            lambda: MigrationCluster(own, own.name), clock.elapsed_s, clock.now_ms, groups, migration.origin.name
        )
        self._topic = AgreementTopic(settings)
        self._read_agreements = agreements or self._topic.read
        self._agreed: Background[Agreements] = Background("agreements of migrations", clock)
        self._origin: Background[ClusterReading] = Background("origin of migrations", clock)
        self._target: Background[ClusterReading] = Background("target of migrations", clock)
        self._history: dict[str, deque[ClusterReading]] = {"origin": deque(), "target": deque()}
        self._seen_ends = SeenEnds()
        # Offset after the last record that is known to be acknowledged, as of the last tick.
        self._acknowledged: EndsByEpoch = {}
        self._passed_ends = PassedEnds()
        self._looked_s: float | None = None
        self._sync_follower = syncs or SyncFollower(
            lambda: MigrationCluster(migration.origin, migration.origin.name),
            lambda: MigrationCluster(own, own.name),
            clock,
        )
        self._syncs: Background[SyncReading] = Background("offset syncs of MirrorMaker", clock)
        self._syncs_s: float | None = None
        self._trails = SyncTrails()
        self._sync_rows: list[dict[str, Any]] = []

    def start_due(self) -> None:
        """Start the readings that are not running, without waiting for them."""
        now_s = self._clock.elapsed_s()
        agreements = self._agreements()
        if agreements or self._looked_s is None or now_s - self._looked_s >= _LOOK_S or self._agreed.result is not None:
            self._looked_s = now_s
            self._agreed.start(self._read_agreements)
        if not agreements:
            return
        wanted = wanted_on_target(agreements)
        self._target.start(lambda: self._target_reader.read(wanted))
        asked = wanted_on_origin(agreements, self._acknowledged)
        if asked is not None:
            self._origin.start(lambda: self._origin_reader.read(asked))
        followed = frozenset(own.name for own in agreements if is_mirrored(own))
        # Of those that fail each would cost new connections.
        if followed and (not self._syncs.error or self._syncs_s is None or now_s - self._syncs_s >= _LOOK_S):
            self._syncs_s = now_s
            self._syncs.start(lambda: self._sync_follower.read(followed))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of a tick; none without a migration. It waits for nothing."""
        self._agreed.take()
        if self._target.take():
            self._keep("target", self._target.result)
        if self._origin.take():
            self._keep("origin", self._origin.result)
            if self._origin.result is not None:
                self._seen_ends.see(self._agreements(), self._origin.result)
                self._passed_ends.see(self._agreements(), self._origin.result)
        if self._syncs.take() and self._syncs.result is not None:
            self._trails.add(self._syncs.result)
        self._sync_rows = []
        agreements = self._agreements()
        if not agreements:
            # Later ones may be about recreated topics.
            self._seen_ends.forget()
            return []
        reports = {} if self._agreed.result is None else self._agreed.result[1]
        reported = acknowledged_ends(reports.values(), agreements)
        self._acknowledged = self._acknowledged_ends(reported)
        are_syncs_known = (
            self._trails.is_all and self._syncs.recent(self._stale_s) is not None and not self._syncs.error
        )
        origin = self._facts("origin", self._origin)
        facts = MigrationFacts(
            agreements,
            reports,
            origin,
            self._facts("target", self._target),
            None if origin.now is None else _last_before(self._history["target"], origin.now.began_s),
            self._acknowledged,
            self._slip_ratio,
            self._trails.newest() if are_syncs_known else {},
            "" if are_syncs_known else self._syncs.error or "they have not been read to their end yet",
            self._passed_ends.newest(),
            self._seen_ends.unreported(reported),
        )
        self._sync_rows = sync_rows(facts, self._trails, self._clock.now_ms())
        return migration_rows(facts)

    @property
    def is_none_agreed(self) -> bool:
        """Whether the agreement topic was read to its end just now, and has no migration, or does not exist.

        Without rows for another reason this is false: what was not read is unknown.
        """
        read = self._agreed.recent(self._stale_s)
        return read is not None and not read[0] and not self._agreed.error

    def sync_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the kind ``migration_syncs`` in the tick of the last ``rows``."""
        return self._sync_rows

    def confirm_sync_rows(self) -> None:
        """Record that these are written; otherwise they are sent again."""
        sent: defaultdict[TopicPartition, set[int]] = defaultdict(set)
        for row in self._sync_rows:
            sent[TopicPartition(row["topic"], row["partition"])].add(row["sync_offset"])
        self._trails.confirm(sent)

    def shift(self) -> None:
        """Forget earlier readings, because the wall clock was set: their times are of another one."""
        for history in self._history.values():
            history.clear()

    def close(self) -> None:
        """Close every connection that is not in use."""
        for reader in (self._origin_reader, self._target_reader, self._topic, self._sync_follower):
            reader.close()

    def _agreements(self) -> Sequence[PartitionAgreement]:
        return () if self._agreed.result is None else self._agreed.result[0]

    def _keep(self, side: str, reading: ClusterReading | None) -> None:
        history = self._history[side]
        if reading is None or (history and reading.began_s - history[-1].began_s < _KEEP_EVERY_S):
            return
        history.append(reading)
        while len(history) > 1 and reading.began_s - history[1].began_s >= _GROUP_RATE_S:
            history.popleft()

    def _facts(self, side: str, background: Background[ClusterReading]) -> ClusterFacts:
        now = background.recent(self._stale_s)
        history = self._history[side]
        return ClusterFacts(
            now,
            None if now is None else _earlier(history, now, _RATE_S),
            None if now is None else _earlier(history, now, _GROUP_RATE_S),
            "" if now is not None else background.error or "it has not answered yet",
            background.result,
        )

    def _acknowledged_ends(self, reported: EndsByEpoch) -> EndsByEpoch:
        """Return what routers have reported and what was seen, the furthest of them."""
        known = {name: dict(own) for name, own in reported.items()}
        for name, seen in self._seen_ends.replicated().items():
            of_partition = known.setdefault(name, {})
            for epoch, end in seen.items():
                of_partition[epoch] = max(end, of_partition.get(epoch, 0))
        return known


class AgreementTopic:
    """Reads the agreement topic of the watched cluster to its end, and follows it from then on.

    Args:
        settings: all settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._cluster = settings.cluster
        self._reader: AgreementReader | None = None

    def read(self) -> Agreements:
        """Return all agreements of which the origin has something left, and reports; none if the topic does not exist.

        Raises:
            HeadroomError: the topic could not be read to its end.
        """
        if self._reader is None:
            self._reader = new_agreement_reader(self._cluster)
        try:
            if not self._reader.exists():
                return (), {}
            self._reader.read_to_end(_AGREEMENT_S)
        except HeadroomError:
            self.close()
            raise
        # What was deleted there is over: its alerts end with its rows.
        agreements = tuple(one for one in self._reader.agreements.values() if not one.origin_dropped)
        return agreements, dict(self._reader.reports)

    def close(self) -> None:
        """Close the consumer."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def _earlier(history: Sequence[ClusterReading], now: ClusterReading, span_s: float) -> ClusterReading | None:
    """Return the newest reading that is a span older; the oldest one, if none is, and None without another one."""
    older = [reading for reading in history if reading.began_s < now.began_s]
    return next((one for one in reversed(older) if now.began_s - one.began_s >= span_s), older[0] if older else None)


def _last_before(history: Sequence[ClusterReading], began_s: float) -> ClusterReading | None:
    return next((one for one in reversed(history) if one.began_s <= began_s), None)
