"""How a process gets its Spark session, without importing Spark."""

from __future__ import annotations

import os
from enum import Enum

# Java's first compiler alone, for JVMs that run for a few minutes: thorough compilation would take most of such a run.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


class SessionProfile(Enum):
    """Purpose of a Spark session, which decides how its JVM collects garbage and compiles."""

    # For alerts: short pauses, at the cost of throughput.
    LOW_LATENCY = "low latency"
    # For tables alone: longer pauses.
    THROUGHPUT = "throughput"
    # The same for small clusters, of which a start is most of the work of an hour.
    SMALL_THROUGHPUT = "throughput of a small cluster"


def is_submitted() -> bool:
    """Return whether ``spark-submit`` has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
