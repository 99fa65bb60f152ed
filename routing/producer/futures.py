"""Futures of routed records."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kafka.errors import KafkaTimeoutError
from kafka.future import Future

# One for all futures: it is held for the time of one assignment.
_ASKING = threading.Lock()


class _OwnFuture(Future):
    """Future that has the outcome of another one, once there is one; ``get`` waits for it."""

    def get(self, timeout: float | None = None) -> Any:
        if not self.is_done:
            done = threading.Event()
            self.add_both(lambda _: done.set())
            if not done.wait(timeout):
                raise KafkaTimeoutError(f"Timeout after waiting for {timeout} secs.")
        if self.exception is not None:
            raise self.exception
        return self.value


class RoutedFuture:
    """Future of a record whose cluster is not known when it is sent, used as kafka-python's.

    Every record below the end offset has one, and hardly any is asked before it is decided. So it is a place for the
    future that knows the outcome, and has callbacks of its own only once somebody asks too early.

    Attributes:
        record: what has to be sent again if it is moved; None once it is decided.
        answer: future of the origin's producer, or of what came of the record; None before it is sent.
    """

    __slots__ = ("_outcome", "_own", "answer", "record")

    def __init__(self, record: tuple[Any, ...], answer: Any = None) -> None:
        """Describe a record that is not decided.

        Args:
            record: what has to be sent again if it is moved.
            answer: future of the origin's producer; None while the record is not sent there.
        """
        self.record: Any = record
        self.answer = answer
        self._outcome: Any = None
        self._own: _OwnFuture | None = None

    def get(self, timeout: float | None = None) -> Any:
        """Return the record's metadata, with its client offset.

        Args:
            timeout: longest wait, seconds; None: no limit.

        Raises:
            KafkaTimeoutError: it is not decided yet.
            KafkaError: the record is not acknowledged.
        """
        return self._asked().get(timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asked(), name)

    def decide(self, outcome: Any) -> None:
        """Take over an outcome, and call back those who asked before it was there.

        Args:
            outcome: future that has it, or will have it.
        """
        self.record = None
        self._outcome = outcome
        if self._own is not None:
            self._pass_on(self._own)

    def _pass_on(self, own: _OwnFuture) -> None:
        # A second time changes nothing.
        self._outcome.add_callback(own.success)
        self._outcome.add_errback(own.failure)

    def _asked(self) -> Any:
        if self._own is None and self._outcome is None:
            with _ASKING:
                self._own = own = self._own or _OwnFuture()
            # It was decided meanwhile, perhaps before there was anybody to call back: ``decide`` takes no lock, because
            # hardly anybody asks.
            if self._outcome is not None:
                self._pass_on(own)
        return self._own or self._outcome


def failed(error: BaseException) -> Any:
    """Return a future that has failed."""
    return _OwnFuture().failure(error)


class TargetFuture:
    """Future of a record on the target, whose metadata has its client offset.

    It adds nothing until it is asked, because after the switch every record has one.
    """

    __slots__ = ("_future", "_shift")

    def __init__(self, future: Any, shift: int) -> None:
        """Take the future of the target's producer.

        Args:
            future: future of kafka-python.
            shift: client offset minus offset on the target.
        """
        self._future = future
        self._shift = shift

    def get(self, timeout: float | None = None) -> Any:
        """Return the record's metadata; as kafka-python's ``get``."""
        return shifted(self._future.get(timeout), self._shift)

    def add_callback(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> TargetFuture:
        """Call with the metadata once the record is acknowledged; as kafka-python's ``add_callback``."""
        self._future.add_callback(lambda metadata: call(*args, shifted(metadata, self._shift), **kwargs))
        return self

    def add_errback(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> TargetFuture:
        """Call with the error if the record is not acknowledged; as kafka-python's ``add_errback``."""
        self._future.add_errback(call, *args, **kwargs)
        return self

    def add_both(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> TargetFuture:
        """Call with either; as kafka-python's ``add_both``."""
        return self.add_callback(call, *args, **kwargs).add_errback(call, *args, **kwargs)

    @property
    def value(self) -> Any:
        """Metadata of the record; None if it is not acknowledged."""
        metadata = self._future.value
        return None if metadata is None else shifted(metadata, self._shift)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._future, name)


def shifted(metadata: Any, shift: int) -> Any:
    """Return a record's metadata with its client offset; an unknown offset stays unknown.

    Args:
        metadata: ``RecordMetadata`` of the target.
        shift: client offset minus offset on the target.
    """
    return metadata if metadata.offset < 0 else metadata._replace(offset=metadata.offset + shift)
