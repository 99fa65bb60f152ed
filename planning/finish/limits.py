"""Broker settings that decide how a throttled copy runs, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuotaWindow:
    """Samples that a replication quota takes its mean over.

    Source: ``ReplicationQuotaManagerConfig``; ``SampledStat`` keeps one sample more than it counts.

    Attributes:
        samples: ``replication.quota.window.num``.
        sample_s: ``replication.quota.window.size.seconds``.
    """

    samples: int = 11
    sample_s: float = 1.0

    @property
    def length_s(self) -> float:
        """Return how long an amount counts at least, seconds."""
        return self.samples * self.sample_s

    @property
    def mean_s(self) -> float:
        """Return the time that the mean is over, on average, in seconds: the oldest sample began up to one earlier."""
        return (self.samples + 0.5) * self.sample_s


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch of a follower brings, and how it retries.

    Source: ``RemoteLeaderEndPoint.buildFetch``, ``ReplicaManager.readFromLog``, ``AbstractFetcherThread.maybeFetch``.

    Attributes:
        partition_bytes: ``replica.fetch.max.bytes``, most bytes of one partition.
        response_bytes: ``replica.fetch.response.max.bytes``, most bytes of one response.
        fetchers: ``num.replica.fetchers``, threads per leading broker.
        wait_s: ``replica.fetch.wait.max.ms`` in seconds, longest wait of a fetch at the leader.
        backoff_s: ``replica.fetch.backoff.ms`` in seconds, wait of a thread that has nothing to fetch.
    """

    partition_bytes: int = 1_048_576
    response_bytes: int = 10_485_760
    fetchers: int = 1
    wait_s: float = 0.5
    backoff_s: float = 1.0

    @property
    def retry_s(self) -> float:
        """Return after how long a destination that has exceeded its quota checks it again, seconds.

        It goes on fetching the partitions of the leader that are in sync, and checks with each of these fetches; only
        a destination that has none backs off.
        """
        return min(self.wait_s, self.backoff_s)

    def burst_bytes(self, replicas: int) -> int:
        """Return what one round of fetches from one leader brings at most, bytes: no quota cuts a response.

        Args:
            replicas: out-of-sync replicas that copy from the leader.
        """
        return min(min(self.fetchers, replicas) * self.response_bytes, replicas * self.partition_bytes)


DEFAULT_WINDOW, DEFAULT_FETCH = QuotaWindow(), FetchLimits()
