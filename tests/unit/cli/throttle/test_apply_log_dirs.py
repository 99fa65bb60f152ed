"""``headroom throttle apply --log-dirs``: the rate of moves between the log directories of a broker."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.builders.throttle_views import MB, NONE, OWN, STILL, UNLISTED, FakeCluster, run, view_of

SLOW = replace(OWN, log_dirs_bytes_per_s=6 * MB, log_dirs_source="broker")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of({1: SLOW, 2: NONE}))
    fake.install(monkeypatch)
    return fake


def test_it_is_set_alone_or_together_with_the_others(cluster: FakeCluster) -> None:
    assert run("apply", "--log-dirs", "50MB", "--brokers", "1,2", "--execute").exit_code == 0
    both = ("apply", "--rate", "10MB", "--role", "leader", "--log-dirs", "50MB", "--brokers", "1", "--execute")
    assert run(*both).exit_code == 0
    assert cluster.changes == [
        {(1, "log_dirs"): 50 * MB, (2, "log_dirs"): 50 * MB},
        {(1, "leader"): 10 * MB, (1, "log_dirs"): 50 * MB},
    ]


def test_text_shows_it_in_a_column_of_its_own(cluster: FakeCluster) -> None:
    shown = run("apply", "--log-dirs", "50MB", "--brokers", "1,2")
    rows = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "broker leader follower log directories" in rows
    assert "1 5.00 MB/s (broker) 5.00 MB/s (broker) 6.00 MB/s -> 50.00 MB/s" in rows
    assert "2 none none none -> 50.00 MB/s" in rows
    assert "headroom throttle apply --log-dirs 50000000 --brokers 1,2 --execute" in shown.stdout
    done = run("apply", "--log-dirs", "50MB", "--brokers", "1,2", "--execute")
    assert "In force: 50.00 MB/s between log directories on brokers 1, 2, read back from each." in done.stdout


def test_raise_only_leaves_a_higher_rate_and_a_broker_without_one(cluster: FakeCluster) -> None:
    assert run("apply", "--log-dirs", "5MB", "--brokers", "1,2", "--raise-only", "--execute").exit_code == 0
    assert cluster.changes == []
    run("apply", "--log-dirs", "7MB", "--brokers", "1,2", "--raise-only", "--execute")
    assert cluster.changes == [{(1, "log_dirs"): 7 * MB}]


def test_it_needs_no_list_and_no_move(cluster: FakeCluster) -> None:
    cluster.view = view_of({1: SLOW}, partitions=(STILL,), configs={"still": UNLISTED})
    shown = run("apply", "--log-dirs", "50MB", "--brokers", "1")
    assert (shown.exit_code, "limits nothing" in shown.stderr) == (0, False)
    assert "1 MB/s is the least" in run("apply", "--log-dirs", "500kB", "--low-rate", "--brokers", "1").stderr


def test_json_has_its_change_only_where_it_was_requested(cluster: FakeCluster) -> None:
    text = json.loads(run("apply", "--log-dirs", "50MB", "--brokers", "1", "--format", "json").stdout)
    assert (text["rate_bytes_per_s"], text["log_dirs_bytes_per_s"]) == (None, 50 * MB)
    assert text["brokers"][0]["changes"] == {
        "leader": None,
        "follower": None,
        "log_dirs": {"action": "set", "from_bytes_per_s": 6 * MB, "to_bytes_per_s": 50 * MB},
    }
    other = json.loads(run("apply", "--rate", "10MB", "--brokers", "1", "--format", "json").stdout)
    assert other["log_dirs_bytes_per_s"] is None
    assert list(other["brokers"][0]["changes"]) == ["leader", "follower"]
