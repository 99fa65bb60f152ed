"""The Spark session and the triggers of its queries."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session and the triggers of its queries.

    Attributes:
        master: Spark master. Empty: ``local[*,2]``, all cores and two attempts of a task. With ``spark-submit``, the
            master given there applies.
        driver_memory: largest heap of the driver, if Headroom starts it, at least 450m. The heap starts small and grows
            as needed.
        driver_java_options: additional JVM options of the driver, separated by spaces, if Headroom starts it; for
            example ``-XX:+HeapDumpOnOutOfMemoryError``.
        shuffle_partitions: partitions of every shuffle. Few are enough, because the data of a tick is small.
        gold_trigger_s: minimum interval between two commits to the gold tables by Spark, in seconds. On a local disk
            the alert path writes most of their rows itself, with each tick of a move.
        gold_idle_trigger_s: maximum time between two commits to the gold tables while no partition moves, is in a
            throttled replica list or is under-replicated, in seconds. 0: four times ``gold_trigger_s``.
        record_trigger_s: minimum interval between two commits to the bronze tables, in seconds. The silver tables
            follow each commit.
        record_idle_trigger_s: maximum time between two commits to the bronze tables while fewer than 200 messages
            arrive, in seconds. 0: twice ``record_trigger_s``.
        history_nice: niceness of the process that writes the history, 0 to 19: the higher, the more it gives way to the
            alert path and to other programs. At 10 or more it may not get to run at all on a busy machine.
        small_cluster_partitions: partitions of all clusters up to which the process that writes the history compiles
            its code quickly, and not thoroughly: its first rows then cost half as much. 0: always thoroughly.
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
    gold_idle_trigger_s: float = 0.0
    record_trigger_s: float = 30.0
    record_idle_trigger_s: float = 0.0
    # Lower priority than the alert path's 0. At 10 a history beside a program that keeps a core busy got a tenth of a
    # core, and its first rows took minutes.
    history_nice: int = 5
    small_cluster_partitions: int = 5000
    jars: str = ""
    conf: dict[str, str] = field(default_factory=dict, repr=False)

    def heap(self) -> str:
        """Return the largest heap of the driver, if Headroom starts it, in Spark's notation."""
        return self.conf.get("spark.driver.memory", self.driver_memory)

    def gold_idle_s(self) -> float:
        """Return the maximum time between two commits to the gold tables while nothing moves, in seconds."""
        return self.gold_idle_trigger_s or 4 * self.gold_trigger_s

    def record_idle_s(self) -> float:
        """Return the maximum time between two commits to the bronze tables while few messages arrive, in seconds."""
        return self.record_idle_trigger_s or 2 * self.record_trigger_s
