"""The demo's two applications: one writes numbered records at a constant rate, the other one reads them."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar

from kafka.errors import KafkaError

from headroom.cli.demo.migration.answers import AnsweredRecord, Read, RecordAnswers
from headroom.cli.demo.migration.clients import Consumer, Producer
from headroom.cli.demo.migration.scenario import RECORD_BYTES, TOPIC
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)
Client = TypeVar("Client")
Connect = Callable[[], AbstractContextManager[Client]]
A = TypeVar("A", bound="Application")  # type: ignore[type-arg]
# Between two looks at what is due, seconds.
_STEP_S = 0.005
_POLL_MS = 100
_COMMIT_S = 1.0
# Longest wait for what is on its way as an application is restarted, on a busy machine too; and for its thread to end.
_FLUSH_S, _END_S = 300.0, 20.0


class Application(ABC, Generic[Client]):
    """A thread with a client, which can be restarted with another one. What is on its way is finished before.

    Args:
        name: name in errors.
        connect: connects its first client.
    """

    def __init__(self, name: str, connect: Connect[Client]) -> None:
        self._name = name
        self._next: Connect[Client] | None = connect
        self._ended = threading.Event()
        self._is_aborted = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self: A) -> A:
        """Return the running application."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it; after an error without finishing what is on its way."""
        self._is_aborted = self._is_aborted or kind is not None
        self._ended.set()
        self._thread.join(_END_S)

    def restart(self, connect: Connect[Client]) -> None:
        """Let it end its client, and continue with another one."""
        self._next = connect

    @property
    def is_restarted(self) -> bool:
        """Whether it works with the client that it was last given.

        Raises:
            HeadroomError: it has failed.
        """
        self.require_running()
        return self._next is None

    def end(self) -> None:
        """End it, and finish what is on its way.

        Raises:
            HeadroomError: it has failed.
        """
        self._ended.set()
        self._thread.join()
        self.require_running()

    def require_running(self) -> None:
        """Check that it has not failed.

        Raises:
            HeadroomError: it has.
        """
        if self._failure is not None:
            kind = type(self._failure).__name__
            raise HeadroomError(f"application {self._name}", f"failed: {kind}: {self._failure}", "See the logs.")

    def _run(self) -> None:
        try:
            while (connect := self._next) is not None and not self._ended.is_set():
                with connect() as client:
                    self._next = None
                    while self._next is None and not self._ended.is_set():
                        self._work(client)
                    if not self._is_aborted:
                        self._finish(client)
        except BaseException as error:
            self._failure = error

    @abstractmethod
    def _work(self, client: Client) -> None:
        """Take one step."""

    @abstractmethod
    def _finish(self, client: Client) -> None:
        """Finish what is on its way."""


class OrderWriter(Application[Producer]):
    """Writes numbered records to each partition. What is due while it cannot write comes later: no order is dropped.

    Args:
        name: name in errors.
        connect: connects its first producer.
        records_per_s: rate of each partition.

    Attributes:
        answers: what became of its records, by partition.
    """

    def __init__(self, name: str, connect: Connect[Producer], records_per_s: Mapping[int, float]) -> None:
        super().__init__(name, connect)
        self._records_per_s = records_per_s
        self._began_s = time.monotonic()
        self.answers = {partition: RecordAnswers() for partition in records_per_s}

    @property
    def acknowledged(self) -> int:
        """Number of records that were acknowledged so far."""
        return sum(len(answers.acknowledged) for answers in self.answers.values())

    def _work(self, client: Producer) -> None:
        self._ended.wait(_STEP_S)
        elapsed_s = time.monotonic() - self._began_s
        for partition, answers in self.answers.items():
            due = int(elapsed_s * self._records_per_s[partition])
            while answers.sent < due and not self._ended.is_set():
                value = (b"%d" % answers.sent).ljust(RECORD_BYTES)
                future = client.send(TOPIC, value, partition=partition)
                future.add_callback(_note, answers, answers.sent).add_errback(_note_failure, answers)
                answers.sent += 1

    def _finish(self, client: Producer) -> None:
        client.flush(_FLUSH_S)


def _note(answers: RecordAnswers, number: int, metadata: object) -> None:
    answers.acknowledged[number] = AnsweredRecord(metadata.offset, time.time())  # type: ignore[attr-defined]


def _note_failure(answers: RecordAnswers, error: BaseException) -> None:
    answers.failed.append(type(error).__name__)


class BillingReader(Application[Consumer]):
    """Reads all records, and commits what it has read.

    Args:
        name: name in errors.
        connect: connects its first consumer.

    Attributes:
        read: records of each partition, as they were read.
    """

    def __init__(self, name: str, connect: Connect[Consumer]) -> None:
        super().__init__(name, connect)
        self._committed_s = time.monotonic()
        self.read: dict[int, list[Read]] = {}

    @property
    def count(self) -> int:
        """Number of records that were read so far, further reads of a record too."""
        return sum(map(len, list(self.read.values())))

    def _work(self, client: Consumer) -> None:
        for partition, records in client.poll(timeout_ms=_POLL_MS).items():
            read = self.read.setdefault(partition.partition, [])
            read += [Read(int(record.value), record.offset) for record in records]
        if time.monotonic() - self._committed_s >= _COMMIT_S:
            try:
                client.commit()
            except KafkaError as error:
                # As the broker that keeps them was killed: the next commit has these offsets too.
                log.info("the commit is tried again: %s", type(error).__name__)
            self._committed_s = time.monotonic()

    def _finish(self, client: Consumer) -> None:
        # What was read and not committed would be read again.
        until_s = time.monotonic() + _FLUSH_S
        while True:
            try:
                return client.commit()
            except KafkaError:
                if time.monotonic() > until_s or self._is_aborted:
                    raise
