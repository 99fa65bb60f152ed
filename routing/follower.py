"""What a router knows of its migrations, and what it reports about itself."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.planning.migration import Split
from headroom.planning.migration.agreement import split_of
from headroom.routing.agreement import AgreementReader
from headroom.routing.reporter import NameTakenError, Reporter
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement

READ_TIMEOUT_S = 10.0
# Methods by which the offsets of clients change at the end offset. Mirrors and links copy records themselves.
_ROUTED = (MigrationMethod.ROUTED.value, MigrationMethod.DRAINED.value)


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
        return isinstance(error, NameTakenError) or self._reader.failure is not None

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
