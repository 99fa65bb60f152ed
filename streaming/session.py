"""The Spark session: made here on one machine, or taken as ``spark-submit`` set it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from schemas.config import SparkSettings
from schemas.errors import HeadroomError

PROJECT_JARS = Path(__file__).resolve().parent.parent / ".jars" / "spark"

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}

_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # A tick is small: adaptive stages and many snapshot tasks would cost more than the work itself.
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM would list the folders of a table in ten thousand tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    # Compaction leaves alone what is large enough: with Delta's 1 GB it would write a growing day anew every hour.
    "spark.databricks.delta.optimize.minFileSize": "67108864",
    "spark.databricks.delta.optimize.maxFileSize": "134217728",
    # The alert path goes first when jobs share the cores.
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "100ms",
    # Rows are few on the alert path: to compile the plans of every batch would take longer than to interpret them.
    **INTERPRETED,
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key|jaas|keystore|truststore",
}
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
}
# A garbage collector that does not stop the alert path for a second, as the simple one does on so small a machine, nor
# lets garbage grow to the heap's limit over hours. The plans of Spark nest deeply, hence the stack.
_LOG = Path(__file__).resolve().with_name("log4j2.properties")
_JVM_OPTIONS = f"-XX:+UseG1GC -Xss4m -Dlog4j2.configurationFile=file:{_LOG}"


def build_session(settings: SparkSettings, app_name: str) -> SparkSession:
    """Return the Spark session with Delta and the Kafka connector.

    Args:
        settings: section ``[spark]``; its ``conf`` wins over what stands here.
        app_name: name that Spark shows.

    Raises:
        HeadroomError: the jars are not there.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = dict(_CONF) | {"spark.sql.shuffle.partitions": str(settings.shuffle_partitions)}
    if not submitted:
        conf |= {"spark.master": settings.master or "local[*]", "spark.driver.memory": settings.driver_memory}
        # The whole heap at once: what is in use after a minute stays, and does not jump when the machine is busy.
        heap = settings.conf.get("spark.driver.memory", settings.driver_memory)
        options = f"{_JVM_OPTIONS} -Xms{heap}"
        conf |= {"spark.jars": ",".join(jars(settings)), "spark.driver.extraJavaOptions": options}
        if conf["spark.master"].startswith("local"):
            conf |= _LOCAL_CONF
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # Straight to the class path: nothing to copy or to serve to executors.
            conf["spark.driver.extraClassPath"] = os.pathsep.join(conf.pop("spark.jars").split(","))
    elif settings.master:
        conf["spark.master"] = settings.master
    builder = SparkSession.builder.appName(app_name)
    for key, value in (conf | settings.conf).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _leave_stdout_alone(session)
    return session


def _leave_stdout_alone(session: SparkSession) -> None:
    """Let the JVM print to stderr: VACUUM tells there what it removed, and stdout is for the command's own words."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.setOut(jvm.java.lang.System.err)


def jars(settings: SparkSettings) -> list[str]:
    """Return the paths of Delta's and the connector's jars.

    Raises:
        HeadroomError: the folder has none.
    """
    folder = Path(settings.jars) if settings.jars else PROJECT_JARS
    found = sorted(str(path) for path in folder.glob("*.jar"))
    if not found:
        raise HeadroomError(
            f"spark.jars ({folder})", "must hold the jars of Delta and of Spark's Kafka connector", "Run `make setup`."
        )
    return found
