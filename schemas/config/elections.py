"""Batches and times of preferred leader elections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ElectionSettings:
    """Batches and times of preferred leader elections.

    Attributes:
        batch_partitions: maximum number of partitions per batch.
        batch_partitions_per_broker: maximum number of leaders that one broker gains or loses per batch.
        batch_write_bytes_per_s: maximum total write rate of the partitions of one batch, in bytes per second (or
            "20MB"), at least 1 kB and at most 1 EB; None: no limit.
        capacity_bytes_per_s: maximum write rate of the partitions that one broker leads, in bytes per second, at least
            1 kB and at most 1 EB; None: unknown, elections are not limited by it.
        quiet_below: cluster write rate below which elections run, in bytes per second (or "50MB"). If ``window`` is set
            too, either condition is enough; None: elections run at any rate.
        window: time of day in which elections run, such as "01:00-05:00" in UTC or "22:00-02:00 Europe/Berlin". Empty:
            any time.
        settle_s: maximum time for the leaders of a batch to change and their followers to be in sync again, in seconds.
            After that, no further batch is elected.
        pause_s: wait between two batches, in seconds.
    """

    batch_partitions: int = 200
    batch_partitions_per_broker: int = 50
    batch_write_bytes_per_s: float | None = None
    capacity_bytes_per_s: float | None = None
    quiet_below: float | None = None
    window: str = ""
    settle_s: float = 60.0
    pause_s: float = 10.0
