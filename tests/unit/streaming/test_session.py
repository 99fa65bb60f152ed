"""Precedence of settings: those of spark-submit override all others, except those that every job requires."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark import SparkConf, SparkContext

from headroom.cli import main
from headroom.operations.check import local as check_local
from headroom.schemas.config import KafkaSettings, SecurityProtocol, Settings, SparkSettings
from headroom.schemas.errors import HeadroomError
from headroom.streaming import session
from headroom.streaming.session import EXECUTOR_OPTIONS, not_started, redaction
from headroom.streaming.session_profile import SessionProfile
from headroom.streaming.sources.kafka_options import kafka_options
from headroom.streaming.sources.ticks_topic import TicksTopic

SETTINGS = SparkSettings(
    master="local[4]", driver_memory="9g", shuffle_partitions=7, conf={"spark.executor.memory": "3g", "spark.x": "1"}
)


def submitted(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> dict[str, str]:
    """What the session sets itself where spark-submit was given these settings."""
    monkeypatch.setattr(SparkContext, "getSystemProperty", given.get)
    return session._submitted_conf(SETTINGS)


def test_settings_given_to_spark_submit_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": "8g",
        "spark.executor.extraJavaOptions": "-Xss8m",
        "spark.sql.shuffle.partitions": "64",
        "spark.scheduler.mode": "FIFO",
    }
    assert given.keys() & submitted(monkeypatch, given).keys() == set()


def test_settings_that_only_spark_submit_knows_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    owned = ("spark.master", "spark.submit.", "spark.driver.", "spark.jars", "spark.ui.")
    assert [key for key in submitted(monkeypatch, {}) if key.startswith(owned)] == []


def test_settings_not_given_to_spark_submit_come_from_the_file_then_from_headroom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conf = submitted(monkeypatch, {})
    wanted = {
        "spark.executor.memory": "3g",
        "spark.x": "1",
        "spark.sql.shuffle.partitions": "7",
        "spark.scheduler.mode": "FAIR",
        "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
    }
    assert {key: conf[key] for key in wanted} == wanted


def test_settings_that_every_job_requires_override_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = submitted(monkeypatch, {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.extensions": "org.other"})
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"


@pytest.mark.parametrize("theirs", [None, "(?i)my-own-word", "my-own-word"])
def test_every_secret_of_a_kafka_option_is_redacted_by_its_name(theirs: str | None, tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("a certificate or a key")
    pem = str(tmp_path / "pem")
    settings = KafkaSettings(
        bootstrap_servers="broker:9093",
        security_protocol=SecurityProtocol.SASL_SSL,
        sasl_mechanism="PLAIN",
        sasl_username="me",
        ssl_cafile=pem,
        ssl_certfile=pem,
        ssl_keyfile=pem,
        ssl_key_password="opens",
    )
    plain = {
        "kafka.bootstrap.servers",
        "kafka.security.protocol",
        "kafka.sasl.mechanism",
        "kafka.fetch.max.wait.ms",
        "kafka.max.poll.records",
        "kafka.allow.auto.create.topics",
        "kafka.request.timeout.ms",
        "kafka.default.api.timeout.ms",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
    }
    shown = {key for key in kafka_options(settings, "hunter2") if not re.search(redaction(theirs), key)}
    assert shown == plain


@pytest.mark.parametrize("request_timeout_ms", [1_000, 10_000, 30_000, 200_000])
def test_offsets_are_asked_for_in_attempts_of_the_request_timeout_for_at_least_three_minutes(
    request_timeout_ms: int,
) -> None:
    options = kafka_options(KafkaSettings(bootstrap_servers="b:1", request_timeout_ms=request_timeout_ms), None)
    assert options["kafka.default.api.timeout.ms"] == options["kafka.request.timeout.ms"] == str(request_timeout_ms)
    assert int(options["fetchOffset.numRetries"]) * request_timeout_ms >= 180_000


def test_no_fetch_waits_at_the_end_of_a_partition_for_records_that_are_not_there() -> None:
    options = kafka_options(KafkaSettings(bootstrap_servers="b:1"), None)
    assert int(options["kafka.fetch.max.wait.ms"]) <= 20


def test_a_poll_of_the_largest_messages_is_a_small_part_of_the_heap() -> None:
    options = kafka_options(KafkaSettings(bootstrap_servers="b:1"), None)
    assert int(options["kafka.max.poll.records"]) * 1_000_000 <= 2_000_000_000 / 50


def test_ranges_of_one_topic_are_read_by_the_same_consumers_and_those_of_another_cluster_by_others() -> None:
    def group(topic: TicksTopic) -> str:
        topic.ranges({0: (0, 1)})
        name: str = spark.read.format().options().option.call_args.args[1]
        return name

    spark = MagicMock()
    spark.read.format().options().option.return_value = spark.read.format().options()
    one, other = (TicksTopic(spark, "ticks", kafka_options(KafkaSettings(f"{b}:1"), None)) for b in "ab")
    assert group(one) == group(one) != group(other)


@pytest.mark.parametrize(
    ("request_timeout_ms", "attempt_ms", "request_ms"), [(10_000, 3_000, 1_500), (2_000, 2_000, 1_500), (800, 800, 800)]
)
def test_the_alert_partition_is_asked_for_in_short_attempts_with_time_for_two_brokers(
    request_timeout_ms: int, attempt_ms: int, request_ms: int
) -> None:
    settings = KafkaSettings(bootstrap_servers="b:1", request_timeout_ms=request_timeout_ms)
    spark = MagicMock()
    TicksTopic(spark, "ticks", kafka_options(settings, None)).alert_stream("latest")
    options = spark.readStream.format.return_value.options.call_args.kwargs
    timeouts = options["kafka.default.api.timeout.ms"], options["kafka.request.timeout.ms"]
    assert timeouts == (str(attempt_ms), str(request_ms))
    assert int(options["fetchOffset.numRetries"]) * attempt_ms >= 180_000


def test_a_users_own_pattern_of_secrets_holds_beside_headrooms(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = submitted(monkeypatch, {"spark.redaction.regex": "my-own-word"})["spark.redaction.regex"]
    assert all(re.search(pattern, key) for key in ("my-own-word", "sasl.JAAS.config"))


def test_watch_which_starts_processes_of_its_own_is_refused_by_spark_submit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert main.run(["watch"]) == 1
    assert "Submit `run watch record`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        # By py4j of an exception in the JVM, and by PySpark of a JVM that is not there.
        "An error occurred while calling None.SparkContext.\n: java.lang.X: no such master.\n\tat a.b(C.java:1)",
        "java.lang.X: no such master",
    ],
)
def test_a_spark_that_does_not_start_is_reported_in_one_line(text: str) -> None:
    error = str(not_started("spark://host:7077", text))
    assert error.startswith("Spark (spark://host:7077): did not start: java.lang.X: no such master. See whether")
    assert "\n" not in error


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set-up's jars with one jar, and beside them an archive of classes."""
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "a.jar").touch()
    monkeypatch.setattr(session, "PROJECT_JARS", tmp_path / "spark")
    monkeypatch.setattr(session, "CLASS_ARCHIVE", tmp_path / "spark.jsa")
    (tmp_path / "spark.jsa").touch()
    return tmp_path / "spark.jsa"


def driver_options(settings: SparkSettings, profile: SessionProfile = SessionProfile.LOW_LATENCY) -> list[str]:
    return session._own_conf(settings, profile)["spark.driver.extraJavaOptions"].split()


def test_paths_with_spaces_and_any_letters_are_one_option_each(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = archive.rename(tmp_path / "ä b.jsa")
    monkeypatch.setattr(session, "CLASS_ARCHIVE", odd)
    text = session._own_conf(SparkSettings(), SessionProfile.LOW_LATENCY)["spark.driver.extraJavaOptions"]
    # Spark reads quotes as a shell does.
    assert f"-XX:SharedArchiveFile={odd}" in shlex.split(text)
    assert all(option.startswith("-") for option in shlex.split(text))
    assert f"-Dlog4j2.configurationFile={session._LOG.as_uri()}" in shlex.split(text)


def test_a_jvm_of_our_own_maps_the_archived_classes_and_has_the_options_of_the_file(archive: Path) -> None:
    options = driver_options(SparkSettings(driver_java_options="-XX:+A -XX:+B"))
    assert {f"-XX:SharedArchiveFile={archive}", "-XX:+A", "-XX:+B"} <= set(options)


@pytest.mark.parametrize(
    ("settings", "initial"),
    [
        (SparkSettings(), "-Xms268435456"),
        (SparkSettings(driver_memory="8g"), "-Xms268435456"),
        (SparkSettings(driver_memory="128m"), "-Xms134217728"),
        (SparkSettings(conf={"spark.driver.memory": "64m"}), "-Xms67108864"),
    ],
)
def test_a_heap_begins_small_and_never_above_its_limit(archive: Path, settings: SparkSettings, initial: str) -> None:
    assert [o for o in driver_options(settings) if o.startswith("-Xms")] == [initial]


def test_the_heap_of_the_history_begins_with_room_for_what_it_keeps_alive(archive: Path) -> None:
    options = driver_options(SparkSettings(), SessionProfile.THROUGHPUT)
    assert [o for o in options if o.startswith("-Xms")] == [f"-Xms{448 * 2**20}"]


def test_a_heap_that_is_no_size_is_left_for_spark_to_name(archive: Path) -> None:
    assert [o for o in driver_options(SparkSettings(driver_memory="much")) if o.startswith("-Xms")] == []


def test_an_option_of_the_file_overrides_ours(archive: Path) -> None:
    # The JVM takes the last one.
    options = driver_options(SparkSettings(driver_java_options="-Xms1g -XX:GCTimeRatio=99"))
    for name in ("-Xms", "-XX:GCTimeRatio"):
        assert [o for o in options if o.startswith(name)][-1] in ("-Xms1g", "-XX:GCTimeRatio=99")


def test_only_a_jvm_that_someone_waits_for_collects_garbage_beside_its_work(archive: Path) -> None:
    assert "-XX:+UseG1GC" in driver_options(SparkSettings())
    assert "-XX:+UseParallelGC" in driver_options(SparkSettings(), SessionProfile.THROUGHPUT)


def test_the_first_compiler_alone_is_for_the_history_of_small_clusters(archive: Path) -> None:
    quick = "-XX:TieredStopAtLevel=1"
    assert [quick in driver_options(SparkSettings(), profile) for profile in SessionProfile] == [False, False, True]
    assert "-XX:+UseParallelGC" in driver_options(SparkSettings(), SessionProfile.SMALL_THROUGHPUT)


def test_classes_of_other_jars_or_of_a_class_path_that_spark_makes_are_not_archived(archive: Path) -> None:
    for settings in (SparkSettings(jars=str(archive.parent / "spark")), SparkSettings(master="spark://host:7077")):
        assert [o for o in driver_options(settings) if "Archive" in o] == []
    archive.unlink()
    assert [o for o in driver_options(SparkSettings()) if "Archive" in o] == []


def started_with(monkeypatch: pytest.MonkeyPatch, conf: dict[str, str]) -> tuple[dict[str, str], set[str]]:
    """Return what stands on the command line of the driver's JVM, and the names in its environment."""
    started: list[tuple[dict[str, str], set[str]]] = []

    def start(*, conf: SparkConf) -> None:
        started.append((dict(conf.getAll()), set(os.environ)))

    monkeypatch.setattr(SparkContext, "_ensure_initialized", start)
    # Without a JVM, as at a start: a conf that has none is a plain mapping.
    monkeypatch.setattr(SparkContext, "_jvm", None)
    session._start_jvm(conf)
    ((on_command_line, environment),) = started
    return on_command_line, environment


def test_no_setting_that_may_be_a_secret_is_on_the_command_line_of_the_jvm(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "spark.hadoop.fs.s3a.secret.key": "hidden",
        "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": "hidden",
        "spark.authenticate.secret": "hidden",
        "spark.executorEnv.TOKEN": "hidden",
        "spark.my.own": "hidden",
    }
    settings = SparkSettings(conf={**secrets, "spark.driver.maxResultSize": "2g"})
    conf = session._own_conf(settings, SessionProfile.LOW_LATENCY)
    assert conf.items() >= secrets.items()
    on_command_line, _ = started_with(monkeypatch, conf)
    assert "hidden" not in on_command_line.values()
    needed = {"spark.master", "spark.driver.memory", "spark.driver.extraClassPath", "spark.driver.extraJavaOptions"}
    assert needed | {"spark.driver.maxResultSize"} <= on_command_line.keys()


def test_the_jvm_gets_no_setting_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_CLUSTER__SASL_PASSWORD", "hidden")
    monkeypatch.setenv("HEADROOM_JARS", "/opt/jars")
    _, environment = started_with(monkeypatch, {})
    assert "HEADROOM_CLUSTER__SASL_PASSWORD" not in environment
    assert "HEADROOM_JARS" in environment
    # It is there again for whoever reads the settings later.
    assert os.environ["HEADROOM_CLUSTER__SASL_PASSWORD"] == "hidden"


def test_the_jars_are_those_of_the_variable_for_the_watch_as_for_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    for folder in (own, tmp_path / "jars" / "spark"):
        folder.mkdir(parents=True)
        for name in ("delta-spark_2.13-4.4.0.jar", "spark-sql-kafka-0-10_2.13-4.2.0.jar"):
            (folder / name).touch()
    monkeypatch.setenv("HEADROOM_JARS", str(tmp_path / "jars"))
    for settings, folder in ((SparkSettings(), tmp_path / "jars" / "spark"), (SparkSettings(jars=str(own)), own)):
        assert {Path(jar).parent for jar in session.jars(settings)} == {folder}
        assert str(folder) in check_local.jars(Settings(spark=settings)).found
    (tmp_path / "jars" / "spark.jsa").touch()
    assert f"-XX:SharedArchiveFile={tmp_path / 'jars' / 'spark.jsa'}" in driver_options(SparkSettings())
    monkeypatch.setenv("HEADROOM_JARS", str(tmp_path / "nothing"))
    with pytest.raises(HeadroomError):
        session.jars(SparkSettings())
