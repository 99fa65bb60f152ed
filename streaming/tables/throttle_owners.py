"""Owners of throttles that are left behind, read from the journal only while there is an alert on them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from headroom.planning.reassignments.run.owners import OWNER_STEPS, ThrottleOwner, owners_by_subject
from headroom.schemas.alerts import AlertEvent, AlertKind
from headroom.streaming.delta import append as delta_append
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.periodic_task import PeriodicTask
from headroom.streaming.tables.journal import ActionJournal

log = logging.getLogger(__name__)

Owners = Mapping[str, ThrottleOwner]
# Looking at the active alerts costs nothing. An alert is pending for minutes before it fires.
_EVERY_S = 3.0
_READ_EVERY_MS = 60_000


def read_owners(store_path: str, cluster: str, process: str | None = None) -> dict[str, ThrottleOwner]:
    """Return the owners of the throttles of a cluster, by their subjects in the journal; empty without a journal.

    Args:
        store_path: ``store.path``.
        cluster: name of the cluster.
        process: process that carries on a run of the cluster now, as text; None if none does, or if that is unknown.

    Raises:
        HeadroomError: the journal cannot be read.
    """
    return owners_by_subject(ActionJournal(store_path).rows(cluster, OWNER_STEPS), process)


class ThrottleOwnersFollower:
    """Passes on the owners of throttles of clusters with a pending or firing ``throttle_left_behind``.

    A journal that cannot be read leaves the owners as they are, and is logged once.

    Args:
        stores: ``store.path`` by cluster.
        active: returns the last events of pending and firing alerts.
        on_owners: gets a cluster and the owners of its throttles.
        clock_ms: returns the time now, epoch milliseconds.
        process_of: returns the process that carries on a run, from ``store.path`` and cluster; None if none does.
    """

    def __init__(
        self,
        stores: Mapping[str, str],
        active: Callable[[], Iterable[AlertEvent]],
        on_owners: Callable[[str, Owners], None],
        clock_ms: Callable[[], int],
        process_of: Callable[[str, str], str | None],
    ) -> None:
        self._stores = stores
        self._active = active
        self._on_owners = on_owners
        self._clock_ms = clock_ms
        self._process_of = process_of
        self._read_ms: dict[str, int] = {}
        self._unreadable: set[str] = set()
        self._task = PeriodicTask("throttle-owners", self.poll, _EVERY_S)

    def start(self) -> None:
        """Start the thread."""
        self._task.start()

    def stop(self) -> None:
        """Stop following."""
        self._task.stop()

    def poll(self) -> None:
        """Read the journals of clusters with such an alert, each once a minute, and forget those of others."""
        kind = AlertKind.THROTTLE_LEFT_BEHIND.value
        clusters = {event.cluster for event in self._active() if event.kind == kind} & self._stores.keys()
        for cluster in self._read_ms.keys() - clusters:
            del self._read_ms[cluster]
            self._on_owners(cluster, {})
        now_ms = self._clock_ms()
        for cluster in sorted(clusters):
            # A clock that was set back must not end the reading.
            if abs(now_ms - self._read_ms.get(cluster, now_ms - _READ_EVERY_MS)) >= _READ_EVERY_MS:
                self._read_ms[cluster] = now_ms
                self._read(cluster)

    def _read(self, cluster: str) -> None:
        store_path = self._stores[cluster]
        try:
            with delta_append.without_panic(store_path):
                owners = read_owners(store_path, cluster, self._process_of(store_path, cluster))
        except Exception as error:
            if cluster not in self._unreadable:
                log.warning("who set the throttles of %s is unknown: %s", cluster, cause_of(error))
            self._unreadable.add(cluster)
            return
        self._unreadable.discard(cluster)
        self._on_owners(cluster, owners)
