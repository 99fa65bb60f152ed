"""``headroom throttle show``, and the rates and brokers that the throttle commands accept."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headroom.cli.common.parameters import Rate
from headroom.cluster.model import BrokerThrottles
from headroom.operations.throttles.throttle_view import notes, view_header, view_json, view_rows
from tests.unit.builders.throttle_views import (
    DEFAULT,
    MB,
    NONE,
    OWN,
    SILENT,
    STILL,
    UNLISTED,
    FakeCluster,
    run,
    view_of,
)

FILE = replace(NONE, in_file=("leader.replication.throttled.rate",))
LOG_DIRS = replace(NONE, log_dirs_bytes_per_s=6 * MB, log_dirs_source="broker")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of({1: OWN, 2: OWN}))
    fake.install(monkeypatch)
    return fake


# 6 kB without a unit is probably 6000 MB; with one it is what was meant.
@pytest.mark.parametrize(
    ("text", "bytes_per_s"), [("6kB", 6_000), ("6000B", 6_000), ("6 kB/s", 6_000), ("6KiB", 6_144)]
)
def test_a_small_rate_with_a_unit_is_taken(text: str, bytes_per_s: int) -> None:
    assert Rate().convert(text, None, None) == bytes_per_s


@pytest.mark.parametrize("text", ["6000", "6000/s", "9.6"])
def test_a_small_rate_without_a_unit_is_asked_about(cluster: FakeCluster, text: str) -> None:
    result = run("apply", "--rate", text)
    assert result.exit_code == 2
    assert "MB meant?" in result.stderr


@pytest.mark.parametrize("text", ["0kB", "0.0001kB"])
def test_nothing_is_no_rate_in_any_unit(cluster: FakeCluster, text: str) -> None:
    result = run("apply", "--rate", text)
    assert (result.exit_code, "greater than 0" in result.stderr) == (2, True)


def test_a_small_rate_is_taken_with_a_flag_and_a_note(cluster: FakeCluster) -> None:
    refused = run("apply", "--rate", "6kB", "--brokers", "1")
    assert refused.exit_code == 2
    assert "--rate is 6 kB/s, and Kafka does not keep a rate below 1 MB/s accurately." in refused.stderr
    assert "If it is meant, add --low-rate." in refused.stderr
    result = run("apply", "--rate", "6kB", "--brokers", "1", "--low-rate")
    assert result.exit_code == 0
    assert "1 MB/s is the least" in result.stderr
    # The printed command has a unit and the flag; without them it would be refused.
    assert "--rate 6000B --low-rate --brokers 1 --execute" in result.stdout
    assert "5.00 MB/s -> 6 kB/s" in result.stdout


@pytest.mark.parametrize("text", ["12,5MB", "1.2.3GB", "50MB per broker", "５０MB", "1e7", "nan"])
def test_a_text_that_is_no_rate_as_a_whole_is_refused(cluster: FakeCluster, text: str) -> None:
    result = run("apply", "--rate", text, "--low-rate", "--brokers", "1", "--execute")
    assert (result.exit_code, cluster.changes) == (2, [])
    assert f"'{text}' is not a rate in bytes per second" in result.stderr


def test_an_unknown_rate_is_unknown_and_never_none() -> None:
    rows = view_rows(view_of({1: OWN, 2: DEFAULT, 3: SILENT}))
    assert rows[:4] == [
        ("broker 1", "5.00 MB/s (broker)", "5.00 MB/s (broker)", "leads 1"),
        ("broker 2", "7.00 MB/s (cluster default)", "none", ""),
        ("broker 3", "unknown", "unknown", "receives 1"),
        ("broker 4", "none", "none", ""),
    ]
    assert view_json(view_of({3: SILENT}))["brokers"][2]["known"] is False


def test_lists_that_could_not_be_read_are_not_called_missing() -> None:
    view = view_of({1: OWN}, configs={"still": UNLISTED})
    assert any("Unknown" in note for note in notes(view))
    assert not any("limits nothing" in note for note in notes(view))
    assert ("topic t", "unknown", "unknown", "1 partition") in view_rows(view)


def test_throttles_left_behind_are_pointed_out() -> None:
    left = view_of({1: OWN}, partitions=(STILL,))
    assert any("left behind" in note for note in notes(left))
    clean = view_of(partitions=(STILL,), configs={"still": UNLISTED})
    assert notes(clean) == ["Nothing is moving."]


def test_the_rate_between_log_directories_has_a_column_only_where_one_is_set() -> None:
    assert view_header(view_of({1: OWN})) == ("what", "leader", "follower", "part in moves")
    view = view_of({2: LOG_DIRS})
    assert view_header(view) == ("what", "leader", "follower", "log directories", "part in moves")
    rows = view_rows(view)
    assert rows[1] == ("broker 2", "none", "none", "6.00 MB/s (broker)", "")
    assert {len(row) for row in rows} == {5}
    assert any("broker(s) 2" in note and "log directories" in note for note in notes(view))


@pytest.mark.parametrize("rates", [OWN, LOG_DIRS])
def test_the_command_that_clears_names_the_settings_file(rates: BrokerThrottles) -> None:
    """Without it, it would clear the throttles of the cluster of headroom.toml."""
    text = " ".join(notes(view_of({1: rates}, partitions=(STILL,)), "b.toml"))
    assert "headroom throttle clear --config b.toml --execute" in text


def test_json_always_has_the_rate_between_log_directories() -> None:
    of_broker = view_json(view_of({2: LOG_DIRS}))["brokers"]
    assert [(b["log_dirs_bytes_per_s"], b["log_dirs_source"]) for b in of_broker[:2]] == [
        (None, "none"),
        (6 * MB, "broker"),
    ]


def test_a_cluster_default_that_every_broker_overrides_is_shown() -> None:
    view = view_of(dict.fromkeys((1, 2, 3, 4), OWN), default=replace(DEFAULT, follower_source="none"))
    assert ("cluster default", "7.00 MB/s (cluster default)", "none", "") in view_rows(view)
    assert view_json(view)["cluster_default"]["leader_bytes_per_s"] == 7 * MB
    assert not any(row[0] == "cluster default" for row in view_rows(view_of({1: OWN})))


def test_show_prints_rows_and_notes_or_json(cluster: FakeCluster) -> None:
    assert "1 partition moving." in run("show").stdout
    assert json.loads(run("show", "--format", "json").stdout)["moving"][0]["adding"] == [3]


def test_a_rate_in_the_properties_file_is_shown_as_not_in_force() -> None:
    view = view_of({1: FILE, 2: NONE, 3: FILE})
    assert view_rows(view)[0][:3] == ("broker 1", "none", "none")
    (shown,) = (note for note in notes(view) if "properties file" in note)
    assert shown.startswith(
        "The properties file of broker(s) 1, 3 sets leader.replication.throttled.rate, which is not in force"
    )
    assert [broker["in_file"] for broker in view_json(view)["brokers"]][:3] == [FILE.in_file, (), FILE.in_file]
    assert not any("properties file" in note for note in notes(view_of({1: OWN})))
