"""Reports of one router to the agreement topic."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace

from kafka import KafkaProducer
from kafka.errors import KafkaError, MessageSizeTooLargeError

from headroom.routing.clients import CLIENT, renew_producer_id
from headroom.routing.leader_notes import LeaderNotes
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MIGRATIONS_TOPIC, AcknowledgedEnd, RouterReport

_TIMEOUT_S = 10.0
# Length of the notes on leaders. A record may have 1 MB by default, and the rest of a report is short.
_MOST_BYTES = 900_000


class NameTakenError(HeadroomError):
    """Another process has taken the name of a router, so that its agreement would count as this one's."""


class Reporter:
    """Writes the report of a router whenever it changes, and notices another process with its name."""

    def __init__(self, name: str, role: str, acks: str | None, producer: KafkaProducer) -> None:
        """Describe a reporter.

        Args:
            name: name of the router.
            role: producer or consumer.
            acks: acks of the router's producer on the origin; None for a consumer.
            producer: producer of the target cluster.
        """
        self._report = RouterReport(name, uuid.uuid4().hex, role, acks, CLIENT)
        self._notes = LeaderNotes()
        self._most_bytes = _MOST_BYTES
        self._is_noted = True
        self._written: RouterReport | None = None
        self._seen = False
        self._producer = producer
        # Answers come on the threads of producers.
        self._noting = threading.Lock()

    def agree(self, numbers: Mapping[str, int]) -> None:
        """Note the agreement that the router keeps to, by migration."""
        with self._noting:
            # What is said of a migration ends with it.
            incomplete = tuple(name for name in self._report.incomplete if name in numbers)
            self._report = replace(self._report, agreed=dict(numbers), incomplete=incomplete)

    def acknowledged(self, end: AcknowledgedEnd) -> None:
        """Note what a leader had acknowledged. Notes on earlier leaders stay: what one has lost no later one brings."""
        with self._noting:
            self._notes.add(end)
            self._is_noted = False

    def write(self) -> None:
        """Write the report unless it is written already.

        Raises:
            HeadroomError: the cluster did not take it.
        """
        report = self._with_notes()
        if report == self._written:
            return
        # An earlier report may have expired.
        renew_producer_id(self._producer)
        try:
            sent = self._producer.send(MIGRATIONS_TOPIC, key=report.key(), value=report.value(), partition=0)
            sent.get(timeout=_TIMEOUT_S)
        except KafkaError as error:
            if isinstance(error, MessageSizeTooLargeError):
                self._take_less()
            rule = f"its report was not written ({type(error).__name__})"
            remedy = f"See that the target cluster answers, and that it may write to {MIGRATIONS_TOPIC}."
            raise HeadroomError(f"router {report.router}", rule, remedy) from error
        self._written = report

    def check_name(self, reports: Mapping[str, RouterReport]) -> None:
        """Refuse to continue once another process has taken the name, and keep what an earlier one has noted.

        Args:
            reports: reports by name of the router, as read from the topic.

        Raises:
            NameTakenError: the newest report under the name is of another process.
        """
        name = self._report.router
        newest = reports.get(name)
        is_own = newest is not None and newest.instance == self._report.instance
        if self._seen and not is_own:
            rule = "another process has taken this name"
            raise NameTakenError(f"router {name}", rule, "Name each process differently.")
        self._seen = self._seen or is_own
        if newest is not None and not is_own:
            # The report of this process replaces it, and nobody else knows what its leaders had acknowledged.
            with self._noting:
                self._notes.inherit(newest.acknowledged)
                self._is_noted = False
                incomplete = tuple(sorted({*self._report.incomplete, *newest.incomplete}))
                self._report = replace(self._report, incomplete=incomplete)

    def _with_notes(self) -> RouterReport:
        """Return the report with as many notes as fit. Of which migrations some are missing it says itself."""
        with self._noting:
            if not self._is_noted:
                self._is_noted = True
                incomplete = self._report.incomplete
                if self._notes.fit(self._most_bytes):
                    incomplete = tuple(sorted({*incomplete, *self._report.agreed}))
                self._report = replace(self._report, acknowledged=self._notes.ends(), incomplete=incomplete)
            return self._report

    def _take_less(self) -> None:
        """Have the next report be shorter, because this one was too long for this cluster."""
        with self._noting:
            self._most_bytes = min(self._most_bytes, self._notes.size_bytes) // 2
            self._is_noted = False
