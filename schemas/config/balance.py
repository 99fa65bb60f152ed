"""Scores of brokers, and proposals of changes that balance their load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BalanceSettings:
    """Scores of brokers, and proposals of changes that balance their load.

    Attributes:
        history: time over which the load of a broker is looked at, in seconds (or "24h").
        percentile: percentile over the hours of the history that is the load of a broker, 0 to 100.
        goals: goals, comma-separated: built-in names, names of entry points, or ``module:Class``. Empty: all built-in
            goals. Hard goals always hold.
        detect_below: network rate in bytes per second (or "1MiB"). If a broker and the mean of all are both below it,
            the broker counts as in band.
        move_overhead: cost of a move besides its bytes, as bytes (or "256MB").
        propose_every_s: time between two proposals while the load of a broker is out of band, in seconds.
        network_in_capacity: bytes that a broker can receive per second, replication included (or "1.25GB"), at least
            1 kB and at most 1 EB. The goal ``network_in_capacity`` allows 80 % of it; None: unknown, it limits nothing.
        network_out_capacity: bytes that a broker can send per second, replication included (or "1.25GB"), at least
            1 kB and at most 1 EB. The goal ``network_out_capacity`` allows 80 % of it; None: unknown, it limits
            nothing.
        replica_capacity: number of replicas that a broker can have. The goal ``replica_capacity`` allows 80 % of it;
            None: unknown, it limits nothing.
        window: time of day in which batches start, such as "01:00-05:00" in UTC or "22:00-02:00 Europe/Berlin". Empty:
            any time.
    """

    history: float = 86_400.0
    percentile: float = 95.0
    goals: str = ""
    detect_below: float = 1_048_576.0
    move_overhead: float = 256_000_000.0
    propose_every_s: float = 3600.0
    network_in_capacity: float | None = None
    network_out_capacity: float | None = None
    replica_capacity: int | None = None
    window: str = ""
