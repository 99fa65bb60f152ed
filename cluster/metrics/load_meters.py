"""Names of the meters of load, which are read seldom: requests, their times, log flushes and idle request handlers."""

from __future__ import annotations

from headroom.cluster.model import Meter

CONSUMED, PRODUCE_REQUESTS, FETCH_REQUESTS = "BytesOutPerSec", "TotalProduceRequestsPerSec", "TotalFetchRequestsPerSec"
# Meters of ``BrokerTopicMetrics`` that are read per topic and of the broker as a whole. A request counts once for each
# of its partitions, and a follower's fetch counts too (ReplicaManager).
LOAD_TOPIC_METERS = (CONSUMED, PRODUCE_REQUESTS, FETCH_REQUESTS)

# Percentiles since the start of the broker that favour the last 5 minutes (Yammer's biased histogram), in milliseconds.
TIMES, FLUSH_TIMES = "TotalTimeMs", "LogFlushRateAndTimeMs"
PERCENTILES = {"RequestMetrics": "99thPercentile", "LogFlushStats": "999thPercentile"}
PRODUCE, FOLLOWER_FETCH = "Produce", "FetchFollower"
PRODUCE_P99 = Meter(f"RequestMetrics.{TIMES}.{PRODUCE}")
FOLLOWER_FETCH_P99 = Meter(f"RequestMetrics.{TIMES}.{FOLLOWER_FETCH}")
LOG_FLUSH_P999 = Meter(f"LogFlushStats.{FLUSH_TIMES}")
REQUEST_P99 = {PRODUCE: PRODUCE_P99, FOLLOWER_FETCH: FOLLOWER_FETCH_P99}

# Nanoseconds that the request handlers were idle, a mean over the threads of their pool. The broker's own pool has a
# name since KIP-1207. The older name counts all pools of the process. In older releases a combined controller's pool
# came on top, so that both together were idle up to 2 seconds a second (KAFKA-19606).
HANDLER_POOL = "KafkaRequestHandlerPool"
BROKER_IDLE, PROCESS_IDLE = "BrokerRequestHandlerAvgIdlePercent", "RequestHandlerAvgIdlePercent"
HANDLER_IDLE = Meter(f"{HANDLER_POOL}.{PROCESS_IDLE}")

# No MBeans, but sums over a broker's answer to DescribeLogDirs: bytes of all logs, and free and all bytes of volumes
# that are online.
LOG_DIRS_USED, LOG_DIRS_USABLE = Meter("LogDirs.UsedBytes"), Meter("LogDirs.UsableBytes")
LOG_DIRS_TOTAL = Meter("LogDirs.TotalBytes")


def topic_consumed(topic: str | None = None) -> Meter:
    """Return the name of the BytesOutPerSec meter of a topic, what consumers fetch; of the broker if None."""
    return Meter(f"BrokerTopicMetrics.{CONSUMED}", topic)


def produce_requests(topic: str | None = None) -> Meter:
    """Return the name of the TotalProduceRequestsPerSec meter of a topic; of the broker if None."""
    return Meter(f"BrokerTopicMetrics.{PRODUCE_REQUESTS}", topic)


def fetch_requests(topic: str | None = None) -> Meter:
    """Return the name of the TotalFetchRequestsPerSec meter of a topic; of the broker if None."""
    return Meter(f"BrokerTopicMetrics.{FETCH_REQUESTS}", topic)
