"""Broker settings that determine the course of a throttled copy, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuotaWindow:
    """Samples of a replication quota, whose mean is compared with the throttle.

    Source: ``ReplicationQuotaManagerConfig``; ``SampledStat`` keeps one sample more than it counts.

    Attributes:
        samples: ``replication.quota.window.num``.
        sample_s: ``replication.quota.window.size.seconds``.
    """

    samples: int = 11
    sample_s: float = 1.0

    @classmethod
    def with_defaults(cls, samples: int | None, sample_s: float | None) -> QuotaWindow:
        """Return the window that a broker reports; Kafka's defaults for values that it does not report."""
        return cls(samples or cls.samples, float(sample_s or cls.sample_s))

    @property
    def length_s(self) -> float:
        """Return the shortest time for which an amount counts, seconds."""
        return self.samples * self.sample_s

    @property
    def mean_s(self) -> float:
        """Return the average time span of the mean, seconds. The oldest sample starts up to one sample earlier."""
        return (self.samples + 0.5) * self.sample_s


@dataclass(frozen=True)
class FetchLimits:
    """Size limits and retries of a follower's fetches.

    Source: ``RemoteLeaderEndPoint.buildFetch``, ``ReplicaManager.readFromLog``, ``AbstractFetcherThread.maybeFetch``.

    Attributes:
        partition_bytes: ``replica.fetch.max.bytes``, maximum per partition.
        response_bytes: ``replica.fetch.response.max.bytes``, maximum per response.
        fetchers: ``num.replica.fetchers``, threads per leading broker.
        wait_s: ``replica.fetch.wait.max.ms`` in seconds, longest wait of a fetch at the leader.
        backoff_s: ``replica.fetch.backoff.ms`` in seconds, wait of a thread without a partition to fetch.
    """

    partition_bytes: int = 1_048_576
    response_bytes: int = 10_485_760
    fetchers: int = 1
    wait_s: float = 0.5
    backoff_s: float = 1.0

    @classmethod
    def with_defaults(
        cls, partition_bytes: int | None, response_bytes: int | None, fetchers: int | None, backoff_ms: float | None
    ) -> FetchLimits:
        """Return the limits that a follower reports; Kafka's defaults for values that it does not report."""
        return cls(
            partition_bytes=partition_bytes or cls.partition_bytes,
            response_bytes=response_bytes or cls.response_bytes,
            fetchers=fetchers or cls.fetchers,
            backoff_s=cls.backoff_s if backoff_ms is None else backoff_ms / 1000,
        )

    @property
    def retry_s(self) -> float:
        """Return the time after which a destination that exceeded its quota checks it again, seconds.

        It continues to fetch in-sync partitions of the leader, and checks the quota with each fetch. Only a destination
        without such partitions backs off.
        """
        return min(self.wait_s, self.backoff_s)

    def burst_bytes(self, replicas: int) -> int:
        """Return the maximum size of one round of fetches from one leader, in bytes. No quota cuts a response.

        Args:
            replicas: number of out-of-sync replicas that copy from the leader.
        """
        return min(min(self.fetchers, replicas) * self.response_bytes, replicas * self.partition_bytes)


DEFAULT_WINDOW, DEFAULT_FETCH = QuotaWindow(), FetchLimits()
