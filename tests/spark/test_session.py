"""The session as it runs: what its JVM was given is in force."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headroom.cluster.embedded.processes import last_lines
from headroom.streaming.session import CLASS_ARCHIVE

_SETUP_LOG = CLASS_ARCHIVE.with_name("archive.log")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what a process has mapped")
def test_the_archived_classes_are_mapped(spark: SparkSession) -> None:
    assert CLASS_ARCHIVE.exists(), f"set-up wrote none: {last_lines(_SETUP_LOG, 1)}"
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pid = jvm.java.lang.ProcessHandle.current().pid()
    assert str(CLASS_ARCHIVE) in Path(f"/proc/{pid}/maps").read_text()


def test_a_suspend_of_hours_does_not_make_spark_take_its_own_jvm_for_dead(spark: SparkSession) -> None:
    receiver = spark.sparkContext.getConf().get("spark.storage.blockManagerHeartbeatTimeoutMs")
    assert receiver is not None
    assert int(receiver) > 12 * 3_600_000
