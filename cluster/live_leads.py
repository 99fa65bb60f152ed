"""The leaders of a running cluster: looked at with the traffic on them, and changed by elections."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import TracebackType

from cluster.admin import MetadataReader, read_whole
from cluster.brokers import BrokerReaders
from cluster.client import AdminLink
from cluster.elect import Answers, elect_preferred
from cluster.leads import Leads, leads_of, same_leaders
from cluster.model import BrokerRead, Snapshot
from cluster.sources import metrics_source
from cluster.traffic import Sample, measured
from cluster.watched import Plans
from planning.elections import Name
from schemas.config import Settings
from schemas.errors import HeadroomError

# Counters that are read 5 s apart give rates that are good to some percent.
SAMPLE_S = 5.0
# JMX reads its own stubs and classes first.
_READ_S = 10.0
# A command may wait longer than a tick for the metadata of very many partitions.
_METADATA_S = 30.0
_CONFIG_MAX_AGE_S = 30.0
_MOST_AGE_MS = 30_000


class LiveLeads:
    """Looks at who leads what, and asks for elections, on connections of its own.

    Args:
        settings: cluster and source of the metrics.
        sleep: waits for some seconds.
    """

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._timeout_s = settings.cluster.request_timeout_ms / 1000
        self._link = AdminLink(settings.cluster)
        self._source = metrics_source(settings.collect)
        self._metadata = MetadataReader(self._link, max(_METADATA_S, self._timeout_s), _CONFIG_MAX_AGE_S)
        self._readers = BrokerReaders(self._link, self._source, settings.collect)
        self._plans = Plans(consumed=True)
        self._sleep = sleep

    def __enter__(self) -> LiveLeads:
        """Return this, connected.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._link.client()
        # Without metrics there are no rates, and every broker's reading says why.
        with suppress(HeadroomError):
            self._source.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._source.stop()
        self._link.close()

    def look(self) -> Leads:
        """Return who leads what now, with throttles and with the traffic of the seconds that this takes.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        before = self._snapshot()
        earlier = self._read(before)
        self._sleep(SAMPLE_S)
        now = self._snapshot()
        later = self._read(now)
        traffic = measured(same_leaders(before, now), _sample(earlier), _sample(later))
        return leads_of(now, later, traffic)

    def glance(self) -> Leads:
        """Return who leads what now, by the metadata alone.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        return leads_of(self._snapshot())

    def elect(self, names: Collection[Name]) -> Answers:
        """Ask for the election of the preferred leaders of these partitions, and return what became of each.

        Raises:
            HeadroomError: no broker took the request, or this user may not ask.
        """
        return elect_preferred(self._link, names, self._timeout_s)

    def _snapshot(self) -> Snapshot:
        snapshot = read_whole(self._metadata)
        if max(snapshot.ages_ms.values(), default=0) > _MOST_AGE_MS:
            rule = f"did not tell all of its partitions within {_MOST_AGE_MS // 1000} s"
            raise HeadroomError("the cluster", rule, "See that its brokers are not overloaded, then try again.")
        return snapshot

    def _read(self, snapshot: Snapshot) -> dict[int, BrokerRead]:
        return self._readers.read(snapshot.brokers, self._plans.of(snapshot, ()), _READ_S)


def _sample(reads: Mapping[int, BrokerRead]) -> Sample:
    metrics = {broker: read.metrics for broker, read in reads.items() if read.metrics is not None}
    return Sample(metrics, {b: read.error or "did not tell" for b, read in reads.items() if read.metrics is None})
