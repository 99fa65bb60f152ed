"""What a router knows of its migrations, and what it reports about itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from headroom.planning.migration import Split
from headroom.planning.migration.agreement import split_of
from headroom.routing.agreement import AgreementReader
from headroom.routing.clients import RefreshedMetadata
from headroom.routing.reporter import NameTakenError, Reporter
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement

READ_TIMEOUT_S = 10.0
# Methods by which the offsets of clients change at the end offset. Mirrors and links copy records themselves.
_ROUTED = (MigrationMethod.ROUTED.value, MigrationMethod.DRAINED.value)
# Interval at which clusters and topics are compared with what was agreed, and while newer metadata of a topic is waited
# for, seconds.
_COMPARE_S, _REFRESH_S = 1.0, 0.1


class ReplacedError(HeadroomError):
    """A cluster, or a topic, is another one than was agreed about: the same offsets are of other records."""


class AgreementFollower:
    """Reads the agreements between two clusters, and reports which of them a router keeps to."""

    def __init__(self, reader: AgreementReader, reporter: Reporter, clusters: tuple[str, str]) -> None:
        """Describe a follower.

        Args:
            reader: reader of the agreement topic.
            reporter: reporter of the router.
            clusters: ids of the origin and the target.
        """
        self._reader = reader
        self._reporter = reporter
        self._clusters = clusters
        self._is_complete = False
        # Computed only when something is new: there may be thousands of partitions, and a report many times a second.
        self._is_noted = False
        self._next_compare = 0.0
        # Topics that were the agreed ones, and newer metadata of those that never were: metadata that is older than an
        # agreement shows no replacement.
        self._known_topics: set[tuple[str, str, str]] = set()
        self._refreshed: dict[tuple[str, str, str], RefreshedMetadata] = {}

    def read(self, wait_s: float = 0.0, timeout_s: float = READ_TIMEOUT_S) -> bool:
        """Read what is new, and return whether something is.

        Args:
            wait_s: longest wait for something, seconds.
            timeout_s: longest time to read it, seconds.

        Raises:
            HeadroomError: the topic cannot be read to its end.
            NameTakenError: another process has taken the router's name.
        """
        if self._reader.at_end and not self._reader.poll(wait_s) and self._is_complete:
            return False
        self._is_complete = False
        self._reader.read_to_end(timeout_s)
        self._is_complete = True
        self._is_noted = False
        self._reporter.check_name(self._reader.reports)
        return True

    def is_final(self, error: Exception) -> bool:
        """Return whether an error will not pass: a record cannot be read, or the router's name is another's."""
        return isinstance(error, (NameTakenError, ReplacedError)) or self._reader.failure is not None

    def require_same(self, origin: Any, target: Any) -> None:
        """Refuse to continue once a cluster or a topic in use was replaced, as the clients' metadata shows it.

        An origin that is over may be deleted, and its address be another cluster's.

        Args:
            origin: metadata of the router's client of the origin.
            target: metadata of its client of the target.

        Raises:
            ReplacedError: one is another one now.
        """
        now_s = time.monotonic()
        if now_s < self._next_compare:
            return
        self._next_compare = now_s + _COMPARE_S
        for cluster, metadata, own in self._clusters_in_use(origin, target):
            agreed = own.origin_cluster_id if cluster == "origin" else own.target_cluster_id
            if metadata.cluster_id not in (None, agreed):
                rule = f"is the cluster {metadata.cluster_id} now, and {agreed} was agreed about"
                raise ReplacedError(f"the {cluster} of {own.name}", rule, "Give the router the addresses of that one.")
            agreed_id = own.origin_topic_id if cluster == "origin" else own.target_topic_id
            topic_id = metadata.topic_id(own.topic)
            if agreed_id is None or topic_id is None:
                continue
            key = cluster, own.topic, agreed_id
            if str(topic_id) == agreed_id:
                self._known_topics.add(key)
                self._refreshed.pop(key, None)
            elif key in self._known_topics or self._is_new(key, metadata):
                rule = f"was recreated on the {cluster} since the agreement: its id is {topic_id}, not {agreed_id}"
                raise ReplacedError(
                    f"topic {own.topic}", rule, "Its offsets are other ones: end the migration by hand."
                )
            else:
                self._next_compare = now_s + _REFRESH_S

    def _is_new(self, topic: tuple[str, str, str], metadata: Any) -> bool:
        """Return whether metadata of a topic is newer than the first look at it, and so than the agreement.

        A process that starts after a topic was recreated never sees the agreed one.
        """
        found = self._refreshed.get(topic)
        if found is None:
            found = self._refreshed[topic] = RefreshedMetadata(metadata)
        return found.is_new()

    def splits(self) -> dict[TopicPartition, Split]:
        """Return the split of each partition in a migration between the two clusters.

        A partition that is planned without an end offset has none: until producers have left the origin, it is written
        and read there as if there were no migration.

        Raises:
            HeadroomError: a partition of the origin goes to another cluster.
        """
        splits = {agreement.name: split_of(agreement) for agreement in self._own().values()}
        return {name: split for name, split in splits.items() if split.end_offset is not None or split.is_in_use}

    def report(self) -> None:
        """Report that the router keeps to all that was read.

        Raises:
            HeadroomError: the cluster did not take the report.
        """
        if not self._is_noted:
            numbers: dict[str, int] = {}
            for agreement in self._own().values():
                numbers[agreement.migration] = max(agreement.number, numbers.get(agreement.migration, 0))
            self._reporter.agree(numbers)
            self._is_noted = True
        self._reporter.write()

    def _clusters_in_use(self, origin: Any, target: Any) -> Iterator[tuple[str, Any, PartitionAgreement]]:
        """Yield each cluster whose records count, with its metadata and an agreement on a topic there."""
        for own in self._own().values():
            split = split_of(own)
            # While a nearer end offset is agreed, clients may be beyond the one before.
            if split.is_in_use or split.reopened_end is not None:
                yield "target", target, own
                if not split.is_origin_over:
                    yield "origin", origin, own

    def _own(self) -> Mapping[TopicPartition, PartitionAgreement]:
        origin, target = self._clusters
        own = {
            name: agreement
            for (cluster, name), agreement in self._reader.agreements.items()
            if cluster == origin and agreement.method in _ROUTED
        }
        for name, agreement in own.items():
            if agreement.target_cluster_id != target:
                rule = f"it goes to the cluster {agreement.target_cluster_id}, and this router writes to {target}"
                raise HeadroomError(str(name), rule, "Give the router a client of that cluster as its target.")
        return own
