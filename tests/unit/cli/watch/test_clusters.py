"""Several clusters in one pipeline: unique names, and one ticks topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroom.cli.config.several_files import load_clusters
from headroom.cli.watch import pipeline
from headroom.cli.watch.pipeline import require_store
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.session_profile import SessionProfile


def written(folder: Path, file: str, name: str, more: str = "") -> str:
    path = folder / file
    path.write_text(f'[cluster]\nname = "{name}"\nbootstrap_servers = "{name}:9092"\n{more}', encoding="utf-8")
    return str(path)


def test_the_first_file_leads_and_the_others_are_watched_too(tmp_path: Path) -> None:
    first = written(tmp_path, "a.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", '[ticks]\nbootstrap_servers = "orders:9092"\n')
    given = load_clusters([first, second])
    assert given.settings.cluster.name == "orders"
    assert given.configs == [("orders", first), ("payments", second)]


def test_recommended_commands_work_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another one, headroom.toml may be that of another cluster."""
    monkeypatch.chdir(tmp_path)
    first = written(tmp_path, "headroom.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", '[ticks]\nbootstrap_servers = "orders:9092"\n')
    assert load_clusters([]).configs == [("orders", first)]
    assert load_clusters(["headroom.toml", "b.toml"]).configs == [("orders", first), ("payments", second)]
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "orders:9092")
    Path(first).unlink()
    assert load_clusters([]).config is None


def test_two_files_of_one_cluster_are_refused(tmp_path: Path) -> None:
    files = [written(tmp_path, file, "orders") for file in ("a.toml", "b.toml")]
    with pytest.raises(HeadroomError) as error:
        load_clusters(files)
    assert error.value.subject == f"{files[1]}: cluster.name orders"


def test_two_files_with_the_same_broker_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a variable, which sets the brokers of every file."""
    first = written(tmp_path, "a.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", '[ticks]\nbootstrap_servers = "orders:9092"\n')
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "b1:9092,Orders:9092")
    assert load_clusters([first]).settings.cluster.name == "orders"
    with pytest.raises(HeadroomError) as error:
        load_clusters([first, second])
    assert error.value.subject == f"{second}: cluster.bootstrap_servers"
    assert "HEADROOM_CLUSTER__BOOTSTRAP_SERVERS" in error.value.remedy


def test_ticks_that_go_elsewhere_are_refused_with_what_to_set(tmp_path: Path) -> None:
    files = [written(tmp_path, "a.toml", "orders"), written(tmp_path, "b.toml", "payments")]
    with pytest.raises(HeadroomError) as error:
        load_clusters(files)
    assert error.value.subject == f"{files[1]}: [ticks]"
    assert 'bootstrap_servers = "orders:9092"' in error.value.remedy


_TICKS = '[ticks]\nbootstrap_servers = "orders:9092"\n'


@pytest.mark.parametrize(
    ("setting", "keys"),
    [
        ('[notify.slack]\ntoken = "xoxb-1"\nchannel = "C0123456789"\n', ("notify.slack.token", "notify.slack.channel")),
        ("[notify]\nlog = true\n", ("notify.log",)),
        ("[spark]\ngold_idle_trigger_s = 5\n", ("spark.gold_idle_trigger_s",)),
        ("[store]\nsilver_keep_days = 5\n", ("store.silver_keep_days",)),
        ("[metrics]\ntop_n = 5\n", ("metrics.top_n",)),
        ("[alerts]\nno_data_s = 40\n", ("alerts.no_data_s",)),
        ('[[alerts.maintenance]]\ndays = ["mon"]\nat = "10:00"\nlasts = "1h"\n', ("alerts.maintenance",)),
    ],
)
def test_a_setting_that_only_the_first_file_decides_is_refused_in_another(
    tmp_path: Path, setting: str, keys: tuple[str, ...]
) -> None:
    first = written(tmp_path, "a.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", _TICKS + setting)
    with pytest.raises(HeadroomError) as error:
        load_clusters([first, second])
    assert error.value.subject == "; ".join(f"{key} in {second}" for key in keys)
    assert "only the first settings file decides it" in error.value.rule
    assert "leave it out here" in error.value.remedy
    # The same in both is in force.
    assert load_clusters([written(tmp_path, "a.toml", "orders", setting), second]).others


def test_partitions_of_the_ticks_topic_are_decided_by_the_first_file(tmp_path: Path) -> None:
    first = written(tmp_path, "a.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", f"{_TICKS}partitions = 9\n")
    with pytest.raises(HeadroomError) as error:
        load_clusters([first, second])
    assert error.value.subject == f"ticks.partitions in {second}"


def test_another_file_decides_on_its_own_cluster_and_has_the_rest_from_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = "[spark]\ngold_idle_trigger_s = 120\n[alerts]\nno_data_s = 40\nmargin_ratio = 1.5\n"
    own = (
        "[collect]\ninterval_s = 7\n[balance]\npercentile = 90\n[reassign]\npause_s = 9\n"
        '[elections]\nwindow = "22:00-04:00"\n[alerts]\nmargin_ratio = 1.3\nfinish_within = "2h"\n'
    )
    first = written(tmp_path, "a.toml", "orders", shared)
    second = written(tmp_path, "b.toml", "payments", _TICKS + own)
    (other,) = load_clusters([first, second]).others
    settings = other.settings
    assert (settings.collect.interval_s, settings.balance.percentile, settings.reassign.pause_s) == (7, 90, 9)
    assert (settings.alerts.margin_ratio, settings.alerts.finish_within) == (1.3, 7200)
    assert (settings.alerts.no_data_s, settings.spark.gold_idle_trigger_s) == (40, 120)
    # The watch commits gold every 120 s, so leader balances of the second cluster are that old too.
    assert other.balances_stale_after_s() == 360
    assert caplog.records == []


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ('[store]\npath = "elsewhere"\n', "store.path"),
        ("[elections]\nbatch_partitions = 7\n", "elections.batch_partitions"),
    ],
)
def test_a_key_that_only_the_commands_of_a_file_follow_is_reported(
    tmp_path: Path, setting: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = written(tmp_path, "a.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", _TICKS + setting)
    assert load_clusters([first, second]).others
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{key} of cluster payments is not that of the first file: ")


@pytest.mark.parametrize("place", ["alerts", "gold"])
def test_a_file_where_tables_belong_is_named_before_spark_starts(tmp_path: Path, place: str) -> None:
    settings = Settings(store=StoreSettings(path=f"{tmp_path}/"))
    require_store(settings)
    file = tmp_path / place
    file.write_text("mine")
    with pytest.raises(HeadroomError) as caught:
        require_store(settings)
    assert caught.value.subject == str(file)
    assert "folder" in str(caught.value)


def test_alerts_do_not_wait_for_the_repair_of_a_table_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "leader_imbalance").write_text("mine")
    require_store(Settings(store=StoreSettings(path=f"{tmp_path}/")))


# The history of small clusters compiles quickly; where a size is unknown it may be large.
@pytest.mark.parametrize(
    ("partitions", "profile"),
    [
        ((2000, 3000), SessionProfile.SMALL_THROUGHPUT),
        ((2000, 3001), SessionProfile.THROUGHPUT),
        ((2000, None), SessionProfile.THROUGHPUT),
    ],
)
def test_the_history_of_clusters_that_are_small_together_compiles_quickly(
    partitions: tuple[int | None, int | None],
    profile: SessionProfile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = written(tmp_path, "a.toml", "orders")
    second = written(tmp_path, "b.toml", "payments", '[ticks]\nbootstrap_servers = "orders:9092"\n')
    sizes = dict(zip(("orders", "payments"), partitions, strict=True))
    monkeypatch.setattr(pipeline, "partition_count", lambda settings: sizes[settings.name])
    assert pipeline._throughput(load_clusters([first, second])) is profile


def test_the_size_up_to_which_a_cluster_is_small_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "partition_count", lambda settings: 7)
    for most, profile in ((6, SessionProfile.THROUGHPUT), (7, SessionProfile.SMALL_THROUGHPUT)):
        config = written(tmp_path, "a.toml", "orders", f"[spark]\nsmall_cluster_partitions = {most}\n")
        assert pipeline._throughput(load_clusters([config])) is profile


def test_under_spark_submit_no_cluster_is_asked_for_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM runs already, and no profile changes it."""

    def asked(settings: ClusterSettings) -> int:
        raise AssertionError("a cluster was asked")

    monkeypatch.setattr(pipeline, "partition_count", asked)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    clusters = load_clusters([written(tmp_path, "a.toml", "orders")])
    assert pipeline._throughput(clusters) is SessionProfile.THROUGHPUT
