"""The Spark session: made here on one machine, or taken as ``spark-submit`` set it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from schemas.config import SparkSettings
from schemas.environment import JARS, without_settings
from schemas.errors import HeadroomError

PROJECT_JARS = Path(__file__).resolve().parent.parent / ".jars" / "spark"
CLASS_ARCHIVE = PROJECT_JARS.with_suffix(".jsa")

# For few rows, which one task works on: what is in one place stays there. Spark takes rows of unknown size for more
# than would ever fit, and would shuffle them before each join. Hints are for many rows.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.defaultSizeInBytes": str(2**30),
    "spark.sql.autoBroadcastJoinThreshold": "1048576",
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    "spark.sql.optimizer.disableHints": "true",
}
# For many rows: as Spark has it by itself.
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.defaultSizeInBytes": str(2**63 - 1),
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
    "spark.sql.maxSinglePartitionBytes": "134217728",
    "spark.sql.optimizer.disableHints": "false",
}
# A message may have a megabyte: with thousands of them in a batch of a reader or of the memory store, as is usual for
# rows, the heap would not hold one. And no sort by day, of rows that are nearly all of one.
LARGE_MESSAGES = {
    "spark.sql.parquet.columnarReaderBatchSize": "16",
    "spark.sql.inMemoryColumnarStorage.batchSize": "4",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Parquet would look for a dictionary of the messages in bronze, of which no two are the same.
    "parquet.enable.dictionary#value": "false",
}

# Without these no job works, or not rightly.
_NEEDED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
}
_REDACTION = "spark.redaction.regex"
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_CONF = {
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
    # Unset, Spark asks the environment whether it is being tested each time it needs a type: some per cent of a batch.
    "spark.sql.types.framework.enabled": "false",
    # The plans of all jobs have more parts than are kept by default: they would be compiled anew in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Rows are few on the alert path: to compile the plans of every batch would take longer than to interpret them.
    **INTERPRETED,
    _REDACTION: "(?i:secret|password|passphrase|token|access[.]?key|jaas|keystore|truststore)",
}
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    # The usual one asks the operating system about links by a process of its own for each file that it renames.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
}
# What the driver's JVM, or Spark's launcher, has to know before there is a socket to it.
_AT_START = (
    "spark.master",
    "spark.driver.",
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.submit.",
    "spark.pyspark.",
    "spark.kerberos.",
    "spark.yarn.",
    "spark.kubernetes.",
)
# Java compiles a method thoroughly when it has been called five thousand times, which Spark's methods have within
# seconds: on two cores that took a third of what a batch had, for minutes. Five times as many are as fast in the end.
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)
_LOG = Path(__file__).resolve().with_name("log4j2.properties")
# The plans of Spark nest deeply, hence the stack.
_DRIVER_OPTIONS = f"-Xss4m {_LATE_COMPILER} -Dlog4j2.configurationFile=file:{_LOG}"
# A garbage collector that does not stop the alert path for a second, as the simple one does on so small a machine, nor
# lets garbage grow to the heap's limit over hours.
_PROMPT = "-XX:+UseG1GC"
# Of the history's work, which may be stopped for a while, collecting beside it takes a sixth.
_THOROUGH = "-XX:+UseParallelGC"
EXECUTOR_OPTIONS = f"{_PROMPT} -Xss4m"


def build_session(settings: SparkSettings, app_name: str, *, prompt: bool = True) -> SparkSession:
    """Return the Spark session with Delta and the Kafka connector.

    By ``spark-submit``, master, memory, jars and all else that it was given stay as it says.

    Args:
        settings: section ``[spark]``; its ``conf`` wins over what stands here.
        app_name: name that Spark shows.
        prompt: whether someone waits for what it does, as for an alert: else it does more work with longer pauses.

    Raises:
        HeadroomError: the jars are not there, or Spark does not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = _submitted_conf(settings) if submitted() else _own_conf(settings, prompt)
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    master = _given("spark.master") if submitted() else settings.master
    try:
        if not submitted():
            _start_jvm(conf)
        session = builder.getOrCreate()
    # The second is PySpark's own, as when the JVM ended at once.
    except (Py4JError, PySparkException) as error:
        raise not_started(master or "local[*]", str(error)) from error
    session.sparkContext.setLogLevel("ERROR")
    _tell_of_missing_executors(session)
    _leave_stdout_alone(session)
    return session


def _start_jvm(conf: Mapping[str, str]) -> None:
    """Start the driver's JVM, if it does not run yet, with no more on its command line than it needs to start.

    PySpark would put every setting there for as long as the JVM lives, for every user of the machine to read. The
    others, keys of a store among them, reach it by the socket between the two.
    """
    at_start = {key: value for key, value in conf.items() if key.startswith(_AT_START)}
    with without_settings():
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(at_start.items())))


def forget_jvm() -> None:
    """Let go of a JVM that has ended, so that the next session starts one of its own."""
    with SparkContext._lock:
        gateway = SparkContext._gateway
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
    if gateway is not None:
        # Its sockets lead nowhere.
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.kill()
            process.wait()


def throughput_session(session: SparkSession) -> SparkSession:
    """Return a session of the same program for jobs of many rows: compiled plans pay, and messages are large."""
    own = session.newSession()
    configure(own, COMPILED | LARGE_MESSAGES)
    return own


def configure(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Set what holds for the plans that a session makes from now on."""
    for key, value in conf.items():
        session.conf.set(key, value)


def not_started(master: str, error: str) -> HeadroomError:
    """Return the error that says that Spark has not started.

    Args:
        master: as Spark names it.
        error: what it said; of a Java exception the line after py4j's own.
    """
    lines = [line.strip() for line in error.splitlines()] or ["unknown"]
    reason = next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])[:300]
    remedy = "See whether the master is there and can be reached; Spark's log, above, says more."
    return HeadroomError(f"Spark ({master})", f"did not start: {reason.rstrip('.')}", remedy)


def _tell_of_missing_executors(session: SparkSession) -> None:
    """Let Spark warn when no worker has a core or the memory for this program: else it would wait without a word."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    configurator = jvm.org.apache.logging.log4j.core.config.Configurator
    configurator.setLevel("org.apache.spark.scheduler.TaskSchedulerImpl", "WARN")


def _leave_stdout_alone(session: SparkSession) -> None:
    """Let the JVM print to stderr: VACUUM tells there what it removed, and stdout is for the command's own words."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.setOut(jvm.java.lang.System.err)


def submitted() -> bool:
    """Return whether ``spark-submit`` has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _own_conf(settings: SparkSettings, prompt: bool) -> dict[str, str]:
    """Return the settings of a session whose driver is this process's own."""
    conf = _NEEDED | _CONF | {"spark.sql.shuffle.partitions": str(settings.shuffle_partitions)}
    conf |= {"spark.master": settings.master or "local[*]", "spark.driver.memory": settings.driver_memory}
    # The whole heap at once: what is in use after a minute stays, and does not jump when the machine is busy.
    heap = settings.conf.get("spark.driver.memory", settings.driver_memory)
    collector = _PROMPT if prompt else _THOROUGH
    options = f"{collector} {_DRIVER_OPTIONS} -Xms{heap} -XX:+AlwaysPreTouch {settings.driver_java_options}"
    conf |= {"spark.jars": ",".join(jars(settings)), "spark.driver.extraJavaOptions": options}
    if conf["spark.master"].startswith("local"):
        conf |= _LOCAL_CONF
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Straight to the class path: nothing to copy or to serve to executors.
        conf["spark.driver.extraClassPath"] = os.pathsep.join(conf.pop("spark.jars").split(","))
        conf["spark.driver.extraJavaOptions"] += _archived_classes(settings)
    else:
        conf["spark.executor.extraJavaOptions"] = EXECUTOR_OPTIONS
    return conf | settings.conf


def _archived_classes(settings: SparkSettings) -> str:
    """Return the options that let Spark's JVM map the classes that set-up has archived, where they are its own."""
    archive = CLASS_ARCHIVE if _jar_folder(settings) == PROJECT_JARS else _jar_folder(settings).with_suffix(".jsa")
    if settings.jars or not archive.exists():
        return ""
    # Another Java than at set-up cannot use it, does without, and would say so at every start.
    return f" -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def _submitted_conf(settings: SparkSettings) -> dict[str, str]:
    """Return the settings of a session whose driver ``spark-submit`` has started.

    What it was given (its options, ``--conf``, ``spark-defaults.conf``) wins over ``[spark]`` and over Headroom's own,
    but for what no job can do without.
    """
    own = _CONF | {
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
    }
    wished = {key: value for key, value in (own | settings.conf).items() if _given(key) is None}
    return wished | _NEEDED | {_REDACTION: redaction(_given(_REDACTION))}


def _given(key: str) -> str | None:
    """Return what ``spark-submit`` was given for a setting; None: nothing."""
    return SparkContext.getSystemProperty(key)


def redaction(theirs: str | None) -> str:
    """Return the pattern of settings that Spark never shows: Headroom's, and one of a user's own beside it."""
    ours = _CONF[_REDACTION]
    return f"{theirs}|{ours}" if theirs else ours


def jars(settings: SparkSettings) -> list[str]:
    """Return the paths of Delta's and the connector's jars.

    Raises:
        HeadroomError: the folder has none.
    """
    folder = _jar_folder(settings)
    found = sorted(str(path) for path in folder.glob("*.jar"))
    if not found:
        raise HeadroomError(
            f"spark.jars ({folder})", "must hold the jars of Delta and of Spark's Kafka connector", "Run `make setup`."
        )
    return found


def _jar_folder(settings: SparkSettings) -> Path:
    if settings.jars:
        return Path(settings.jars)
    elsewhere = os.environ.get(JARS)
    return Path(elsewhere) / "spark" if elsewhere else PROJECT_JARS
