"""The Spark session and the triggers of its queries."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session and the triggers of its queries.

    Attributes:
        master: Spark master. Empty: ``local[*]``. With ``spark-submit``, the master given there applies.
        driver_memory: heap size of the driver, if Headroom starts it.
        driver_java_options: additional JVM options of the driver, separated by spaces, if Headroom starts it; for
            example ``-XX:+HeapDumpOnOutOfMemoryError``.
        shuffle_partitions: partitions of every shuffle. Few are enough, because the data of a tick is small.
        gold_trigger_s: minimum interval between two commits to the gold tables by Spark, in seconds. On a local disk
            the alert path writes most of their rows itself, with each tick of a move.
        record_trigger_s: minimum interval between two commits to the bronze tables, in seconds. The silver tables
            follow each commit.
        jars: folder of the jars of the Kafka connector and Delta. Empty: the project's own, or those set by
            ``spark-submit``.
        conf: additional Spark settings. They override Headroom's settings; settings given to ``spark-submit`` override
            both.
    """

    master: str = ""
    driver_memory: str = "1g"
    driver_java_options: str = ""
    shuffle_partitions: int = 2
    gold_trigger_s: float = 5.0
    record_trigger_s: float = 30.0
    jars: str = ""
    conf: dict[str, str] = field(default_factory=dict, repr=False)
