"""Producer with an exact write rate per partition, for tests, the demo and benchmarks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

from kafka import KafkaProducer
from kafka.errors import KafkaError

# Interval at which records are sent, to catch up with the target rate.
_STEP_S = 0.05
# Default limit of unacknowledged records of a partition, as time at its rate, because the producer's memory has none.
_HELD_S = 1.0
# A partition that is further behind than the records it holds and this continues from now. So at the default limit no
# burst follows that no throttle was planned for.
_BEHIND_S = 1.0
# Number of random values, which records use in turn.
_VALUES = 16
_BATCH_BYTES = 32_768


class PacedProducer:
    """Writes to each partition at its own constant rate, in bytes of record values per second, from one thread.

    Values are random bytes, so that compression has no effect. A partition without a leader does not delay the others.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        rates_bytes_per_s: Mapping[tuple[str, int], float],
        record_bytes: int = 10_000,
        acks: int | str = 1,
        linger_ms: int = 20,
        held_s: float = _HELD_S,
    ) -> None:
        """Describe a load; ``start`` begins it.

        Args:
            bootstrap_servers: ``host:port`` list of the cluster.
            rates_bytes_per_s: write rate of each (topic, partition), bytes per second.
            record_bytes: size of a record's value in bytes; rates are rounded to whole records.
            acks: as for a Kafka producer: 0, 1 or "all".
            linger_ms: as for a Kafka producer, milliseconds.
            held_s: limit of unacknowledged records of a partition, as seconds at its rate. A partition without a leader
                for less than this loses no record. They are sent once it has a leader.
        """
        self._bootstrap_servers = bootstrap_servers
        self._acks = acks
        self._values = [os.urandom(record_bytes) for _ in range(_VALUES)]
        self._record_bytes = record_bytes
        self._linger_ms = linger_ms
        self._held_s = held_s
        self._pacers = {key: _Pacer(rate, record_bytes, held_s) for key, rate in rates_bytes_per_s.items()}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._flush_timeout_s = 5.0

    def start(self) -> PacedProducer:
        """Connect, start the load in a thread and return this producer."""
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap_servers,
            acks=self._acks,
            enable_idempotence=False,
            linger_ms=self._linger_ms,
            # Small batches, because a replica's fetch of 1 MB ends within a batch, which is then fetched again at the
            # expense of the throttle.
            batch_size=_BATCH_BYTES,
            retry_backoff_ms=100,
        )
        now = time.monotonic()
        for pacer in self._pacers.values():
            pacer.begin(now)
        self._thread = threading.Thread(target=self._run, args=(producer,), name="paced-load", daemon=True)
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop the load; records not acknowledged within ``timeout_s`` seconds are dropped."""
        self._ended.set()
        if self._thread is not None:
            self._flush_timeout_s = timeout_s
            self._thread.join()
            self._thread = None

    def set_rate(self, topic: str, partition: int, bytes_per_s: float) -> None:
        """Change the rate of one partition from now on; a partition that had none is added."""
        pacer = _Pacer(bytes_per_s, self._record_bytes, self._held_s)
        pacer.begin(time.monotonic())
        earlier = self._pacers.get((topic, partition))
        if earlier is not None:
            pacer.continue_counts(earlier)
        self._pacers = {**self._pacers, (topic, partition): pacer}

    @property
    def sent_bytes(self) -> dict[tuple[str, int], int]:
        """Return the acknowledged bytes of record values by (topic, partition)."""
        return {key: pacer.counts.acknowledged * self._record_bytes for key, pacer in self._pacers.items()}

    def __enter__(self) -> PacedProducer:
        """Return the running load."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the load."""
        self.stop()

    def _run(self, producer: KafkaProducer) -> None:
        while not self._ended.wait(_STEP_S):
            now = time.monotonic()
            for (topic, partition), pacer in self._pacers.items():
                for _ in range(pacer.due(now)):
                    self._send(producer, topic, partition, pacer.counts)
        with suppress(KafkaError):
            producer.close(timeout=self._flush_timeout_s)

    def _send(self, producer: KafkaProducer, topic: str, partition: int, counts: _Counts) -> None:
        value = self._values[counts.handed_over % _VALUES]
        counts.handed_over += 1
        try:
            future = producer.send(topic, value, partition=partition)
        except KafkaError as error:
            counts.on_failed(error)
        else:
            future.add_callback(counts.on_acknowledged).add_errback(counts.on_failed)


class _Counts:
    """Record counts of one partition: passed to the producer, acknowledged and failed."""

    def __init__(self) -> None:
        self.handed_over = 0
        self.acknowledged = 0
        self.failed = 0

    def on_acknowledged(self, _metadata: object) -> None:
        self.acknowledged += 1

    def on_failed(self, _error: BaseException) -> None:
        self.failed += 1

    @property
    def pending(self) -> int:
        return self.handed_over - self.acknowledged - self.failed


class _Pacer:
    """Computes how many records of one partition are due, at a constant rate from a start time on."""

    def __init__(self, bytes_per_s: float, record_bytes: int, held_s: float = _HELD_S) -> None:
        self._records_per_s = bytes_per_s / record_bytes
        self._max_pending = max(2, int(self._records_per_s * held_s))
        self._max_behind = max(1.0, self._records_per_s * (held_s + _BEHIND_S))
        self._origin_s = 0.0
        self._released = 0
        self.counts = _Counts()

    def begin(self, now_s: float) -> None:
        self._origin_s = now_s
        self._released = 0

    def continue_counts(self, earlier: _Pacer) -> None:
        """Continue the record counts of the pacer with the earlier rate."""
        self.counts = earlier.counts

    def due(self, now_s: float) -> int:
        """Return how many records to send now; records delayed by pending ones are caught up, unless too old."""
        behind = int((now_s - self._origin_s) * self._records_per_s) - self._released
        if behind > self._max_behind:
            self.begin(now_s)
            return 0
        count = max(0, min(behind, self._max_pending - self.counts.pending))
        self._released += count
        return count
