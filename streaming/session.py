"""Spark session: created here on one machine, or as ``spark-submit`` has set it up."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headroom.schemas.config import SparkSettings
from headroom.schemas.environment import JARS, without_settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import parse_heap_bytes
from headroom.streaming.scratch import LOCAL_DIR, scratch_trouble, use_memory
from headroom.streaming.session_profile import QUICK_COMPILER, SessionProfile, is_submitted

PROJECT_JARS = Path(__file__).resolve().parent.parent / ".jars" / "spark"
CLASS_ARCHIVE = PROJECT_JARS.with_suffix(".jsa")

# For few rows, which one task processes: rows in one partition stay there. Spark assumes that rows of unknown size do
# not fit into memory, and would shuffle them before each join. Hints are for many rows.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.defaultSizeInBytes": str(2**30),
    "spark.sql.autoBroadcastJoinThreshold": "1048576",
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    "spark.sql.optimizer.disableHints": "true",
    # Without compiled code, a cache of common subexpressions takes longer than to evaluate them again.
    "spark.sql.subexpressionElimination.enabled": "false",
}
# For many rows: Spark's defaults.
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.defaultSizeInBytes": str(2**63 - 1),
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
    "spark.sql.maxSinglePartitionBytes": "134217728",
    "spark.sql.optimizer.disableHints": "false",
    "spark.sql.subexpressionElimination.enabled": "true",
}
# A message may have a megabyte. Readers and caches usually batch thousands of rows, and one such batch would not fit
# into the heap. With several open writers Spark does not sort rows by day, nearly all of which have the same day.
LARGE_MESSAGES = {
    "spark.sql.parquet.columnarReaderBatchSize": "16",
    "spark.sql.inMemoryColumnarStorage.batchSize": "4",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Parquet would build a dictionary of the messages in bronze, although no two are equal.
    "parquet.enable.dictionary#value": "false",
}

# Required by all jobs.
_NEEDED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
}
_REDACTION = "spark.redaction.regex"
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_CONF = {
    # A tick is small: adaptive stages and many snapshot tasks would take longer than the work itself.
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM would list the folders of a table in ten thousand tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    # Compaction skips files that are large enough. With Delta's limit of 1 GB it would rewrite a day every hour.
    "spark.databricks.delta.optimize.minFileSize": "67108864",
    "spark.databricks.delta.optimize.maxFileSize": "134217728",
    # The alert path must not wait for other jobs when they share the cores.
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "100ms",
    # Files of earlier batches in a checkpoint. A start needs the last two; the default keeps a hundred.
    "spark.sql.streaming.minBatchesToRetain": "4",
    # If unset, Spark checks the environment for a test run each time it needs a type: some per cent of a batch.
    "spark.sql.types.framework.enabled": "false",
    # Of each call that builds a plan or an expression, Spark would keep the line of Python that made it, which takes
    # longer than the call itself.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Steps of a plan carry only what they need themselves to the tasks. By default each carries all steps below it, and
    # Spark tries for each whether that can be sent: a tenth of a small batch.
    "spark.sql.execution.usePartitionEvaluator": "true",
    # The plans of all jobs have more parts than the default cache. They would be compiled again in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # The alert path has few rows: compiling the plans of a batch would take longer than interpreting them.
    **INTERPRETED,
    _REDACTION: "(?i:secret|password|passphrase|token|access[.]?key|jaas|keystore|truststore)",
}
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    # Delta writes its log without checksum files; see _write_no_checksum_files.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # After a suspend of more than two minutes (a laptop, a moved VM) Spark would take its own JVM for dead, and log
    # hundreds of lines, again and again.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "86400000",
    # For the UI, Spark keeps a thousand jobs and plans, and describes every plan at length.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.ui.explainMode": "simple",
    # Spark's default manager starts a child process (readlink) for each file that it renames.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
}
# Settings that the driver's JVM or Spark's launcher needs at start, before Python is connected.
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
# Java's C2 compiles a method after 5,000 calls, which Spark's methods reach within seconds. On two cores that took a
# third of a batch's CPU time for minutes. With five times as many calls the code is as fast in the end.
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)
# Of the processor time until a history had its first rows, Java's second compiler and the counting of calls for it took
# half. Code that runs for long is slower without it, which hardly shows where rows are few.
_COMPILERS = {
    SessionProfile.LOW_LATENCY: _LATE_COMPILER,
    SessionProfile.THROUGHPUT: _LATE_COMPILER,
    SessionProfile.SMALL_THROUGHPUT: QUICK_COMPILER,
}
_LOG = Path(__file__).resolve().with_name("log4j2.properties")
# The plans of Spark nest deeply, hence the stack.
_DRIVER_OPTIONS = f"-Xss4m -Dlog4j2.configurationFile={_LOG.as_uri()}"
# A task is tried twice. With Spark's default for one machine, once, a broker that is slow for a moment ends a query.
_LOCAL = "local[*,2]"
# The JVM's default on a small machine, the serial collector, pauses the alert path for 1 s, or lets the heap grow for
# hours. G1 does neither. It widens the heap when collections take more than a fifth of the time, by default an
# eighth: on a busy machine pauses are long, although the heap is large enough. It gives unused memory back, twice a
# minute also if nothing else asks for a collection.
_LATENCY_COLLECTOR = "-XX:+UseG1GC"
# By default G1 looks for garbage in the whole heap once old objects fill 45 % of it, and at each large array. Of a
# large cluster a tick's objects alone do. One marking then followed another, a third of the JVM's time.
_LATENCY_MARKING = "-XX:-G1UseAdaptiveIHOP -XX:InitiatingHeapOccupancyPercent=70 -XX:G1HeapRegionSize=4m"
_LATENCY_HEAP = f"-XX:GCTimeRatio=4 -XX:G1PeriodicGCInterval=30000 {_LATENCY_MARKING}"
# For bronze and silver, whose work may pause. Concurrent collection by G1 would take a sixth of its time. By default
# the heap is widened until collections take less than 1 % of the time, that is, always to its limit.
_THROUGHPUT_COLLECTOR = "-XX:+UseParallelGC"
_THROUGHPUT_HEAP = "-XX:GCTimeRatio=19"
# To start with: room for what an idle watch of a small cluster keeps alive (146 and 257 MB), and for new objects.
_INITIAL_HEAP_BYTES = {
    SessionProfile.LOW_LATENCY: 256 * 2**20,
    SessionProfile.THROUGHPUT: 448 * 2**20,
    SessionProfile.SMALL_THROUGHPUT: 448 * 2**20,
}
# Space to keep unused after a full collection, per cent. Without the size of Spark's classes, the JVM would collect the
# heap several times while it loads them.
_SMALL = "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30 -XX:MetaspaceSize=192m"
# By default the C library keeps freed memory in up to eight arenas per core.
_MALLOC_ARENAS = {"MALLOC_ARENA_MAX": "2"}
_HEAPS = {
    SessionProfile.LOW_LATENCY: f"{_LATENCY_COLLECTOR} {_LATENCY_HEAP}",
    SessionProfile.THROUGHPUT: f"{_THROUGHPUT_COLLECTOR} {_THROUGHPUT_HEAP}",
    SessionProfile.SMALL_THROUGHPUT: f"{_THROUGHPUT_COLLECTOR} {_THROUGHPUT_HEAP}",
}
EXECUTOR_OPTIONS = f"{_LATENCY_COLLECTOR} -Xss4m"


def build_session(
    settings: SparkSettings, app_name: str, profile: SessionProfile = SessionProfile.LOW_LATENCY
) -> SparkSession:
    """Return the Spark session with Delta and the Kafka connector.

    Under ``spark-submit`` its master, memory, jars and other settings stay in force.

    Args:
        settings: section ``[spark]``; its ``conf`` overrides the settings of this module.
        app_name: name that Spark shows.
        profile: purpose of the session. Under ``spark-submit`` the JVM runs already, with the collector of its options.

    Raises:
        HeadroomError: the jars are missing, or Spark does not start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = _submitted_conf(settings) if is_submitted() else _with_scratch(_own_conf(settings, profile))
    builder = SparkSession.builder.appName(app_name)
    for key, value in conf.items():
        builder = builder.config(key, value)
    master = _submitted_value("spark.master") if is_submitted() else settings.master
    try:
        if not is_submitted():
            _start_jvm(conf)
        session = builder.getOrCreate()
    # PySparkException: for instance the JVM ended at once.
    except (Py4JError, PySparkException) as error:
        raise not_started(master or _LOCAL, str(error)) from error
    _set_output(session)
    if not is_submitted() and conf["spark.master"].startswith("local"):
        _write_no_checksum_files(session)
    return session


def _write_no_checksum_files(session: SparkSession) -> None:
    """Let Hadoop write no checksum file next to each file on a local disk.

    They double the number of files. Parquet has checksums of its own, and the Delta library writes none either.
    """
    jvm, context = session.sparkContext._jvm, session.sparkContext._jsc
    assert jvm is not None
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(context.hadoopConfiguration()).setWriteChecksum(False)


def _start_jvm(conf: Mapping[str, str]) -> None:
    """Start the driver's JVM, unless it runs, with only the settings on its command line that it needs at start.

    PySpark would put all settings there, and every user of the machine could read them. The others, such as keys of a
    store, are sent over the socket between Python and the JVM.
    """
    at_start = {key: value for key, value in conf.items() if key.startswith(_AT_START)}
    for name, value in _MALLOC_ARENAS.items():
        os.environ.setdefault(name, value)
    with without_settings():
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(at_start.items())))


def forget_jvm() -> None:
    """Discard a JVM that has ended, so that the next session starts a new one."""
    with SparkContext._lock:
        gateway = SparkContext._gateway
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
    if gateway is not None:
        # Its sockets are dead, so closing them may fail.
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.kill()
            process.wait()


def throughput_session(session: SparkSession) -> SparkSession:
    """Return a session of the same Spark application for many rows and large messages, with compiled plans."""
    own = session.newSession()
    configure(own, COMPILED | LARGE_MESSAGES)
    return own


def batch_session(session: SparkSession) -> SparkSession:
    """Return a session of the same Spark application for many small rows, with compiled plans."""
    own = session.newSession()
    configure(own, COMPILED)
    return own


def configure(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Set runtime settings of a session; they affect plans that it makes from now on."""
    for key, value in conf.items():
        session.conf.set(key, value)


def not_started(master: str, error: str) -> HeadroomError:
    """Return the error for a failed start of Spark.

    Args:
        master: Spark's master.
        error: text of the exception. In a Java exception the line after py4j's own is the cause.
    """
    lines = [line.strip() for line in error.splitlines()] or ["unknown"]
    reason = next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])[:300]
    remedy = "See whether the master is there and can be reached; Spark's log, above, says more."
    return HeadroomError(f"Spark ({master})", f"did not start: {reason.rstrip('.')}", remedy)


def _set_output(session: SparkSession) -> None:
    """Set what the JVM logs and prints, and where."""
    session.sparkContext.setLogLevel("ERROR")
    jvm = session.sparkContext._jvm
    assert jvm is not None
    # If no worker has a core or enough memory, Spark would otherwise wait silently.
    configurator = jvm.org.apache.logging.log4j.core.config.Configurator
    configurator.setLevel("org.apache.spark.scheduler.TaskSchedulerImpl", "WARN")
    # VACUUM prints, and stdout is for the output of the command.
    jvm.java.lang.System.setOut(jvm.java.lang.System.err)


def _own_conf(settings: SparkSettings, profile: SessionProfile) -> dict[str, str]:
    """Return the settings of a session whose driver this process starts."""
    conf = _NEEDED | _CONF | {"spark.sql.shuffle.partitions": str(settings.shuffle_partitions)}
    conf |= {"spark.master": settings.master or _LOCAL, "spark.driver.memory": settings.driver_memory}
    heap = f"{_HEAPS[profile]} {_initial_heap(settings, profile)} {_SMALL}"
    options = f"{heap} {_COMPILERS[profile]} {_DRIVER_OPTIONS} {settings.driver_java_options}"
    conf |= {"spark.jars": ",".join(jars(settings)), "spark.driver.extraJavaOptions": options}
    if conf["spark.master"].startswith("local"):
        conf |= _LOCAL_CONF
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # On the class path, because in local mode there are no executors that need copies.
        conf["spark.driver.extraClassPath"] = os.pathsep.join(conf.pop("spark.jars").split(","))
        conf["spark.driver.extraJavaOptions"] += _archived_classes(settings)
    else:
        conf["spark.executor.extraJavaOptions"] = EXECUTOR_OPTIONS
    return conf | settings.conf


def _with_scratch(conf: dict[str, str]) -> dict[str, str]:
    """Return settings of a session with temporary files in memory, if they cannot be written where they usually are.

    Spark does not start without them, and its readers of Kafka unpack libraries there.
    """
    trouble = scratch_trouble(conf)
    folder = None if trouble is None else use_memory(trouble)
    if folder is None:
        return conf
    options = f"{conf['spark.driver.extraJavaOptions']} -Djava.io.tmpdir={folder} -XX:-UsePerfData"
    return conf | {LOCAL_DIR: folder, "spark.driver.extraJavaOptions": options}


def _initial_heap(settings: SparkSettings, profile: SessionProfile) -> str:
    """Return the JVM option of the initial heap: small, and at most the limit."""
    try:
        return f"-Xms{min(_INITIAL_HEAP_BYTES[profile], parse_heap_bytes(settings.heap()))}"
    # Spark names the invalid size.
    except ValueError:
        return ""


def _archived_classes(settings: SparkSettings) -> str:
    """Return the JVM options that use the class archive of `make setup`; empty if there is none for these jars."""
    archive = CLASS_ARCHIVE if _jar_folder(settings) == PROJECT_JARS else _jar_folder(settings).with_suffix(".jsa")
    if settings.jars or not archive.exists():
        return ""
    # A different Java version than at set-up ignores the archive. Its warnings at every start are switched off.
    return f" {shlex.quote(f'-XX:SharedArchiveFile={archive}')} -Xlog:cds=off -Xlog:cds+dynamic=off"


def _submitted_conf(settings: SparkSettings) -> dict[str, str]:
    """Return the settings of a session whose driver ``spark-submit`` has started.

    Its own settings (options, ``--conf``, ``spark-defaults.conf``) override ``[spark]`` and Headroom's settings, except
    for those that every job requires.
    """
    own = _CONF | {
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
    }
    defaults = {key: value for key, value in (own | settings.conf).items() if _submitted_value(key) is None}
    return defaults | _NEEDED | {_REDACTION: redaction(_submitted_value(_REDACTION))}


def _submitted_value(key: str) -> str | None:
    """Return the value of a setting of ``spark-submit``; None if it was not set."""
    return SparkContext.getSystemProperty(key)


def redaction(theirs: str | None) -> str:
    """Return the pattern of settings that Spark redacts: Headroom's, combined with the user's own if there is one."""
    ours = _CONF[_REDACTION]
    return f"{theirs}|{ours}" if theirs else ours


def jars(settings: SparkSettings) -> list[str]:
    """Return the paths of the jars of Delta and of the Kafka connector.

    Raises:
        HeadroomError: the folder has no jars.
    """
    folder = _jar_folder(settings)
    paths = sorted(str(path) for path in folder.glob("*.jar"))
    if not paths:
        raise HeadroomError(
            f"spark.jars ({folder})", "must hold the jars of Delta and of Spark's Kafka connector", "Run `make setup`."
        )
    return paths


def _jar_folder(settings: SparkSettings) -> Path:
    if settings.jars:
        return Path(settings.jars)
    elsewhere = os.environ.get(JARS)
    return Path(elsewhere) / "spark" if elsewhere else PROJECT_JARS
