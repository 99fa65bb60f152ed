"""How a process gets its Spark session, without importing Spark."""

from __future__ import annotations

import os


def submitted() -> bool:
    """Return whether ``spark-submit`` has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
