"""``headroom throttle apply --lists``: a running move gets the list entries that it is missing, and no other."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headroom.cli.throttle import apply as throttle_apply
from headroom.cluster.model import TopicConfig
from headroom.operations.throttles.lists_plan import lists_json, lists_plan
from headroom.operations.throttles.needs.throttle_need import MoveNeed, NeedsSource, ThrottleNeeds
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.throttle_views import MB, MOVING, STILL, UNLISTED, FakeCluster, run, view_of

BARE = {"t": UNLISTED, "still": UNLISTED}
# t-0 had brokers 1 and 2, and gains 3.
BOTH = TopicLists("0:1,0:2", "0:3")
LISTS = ("apply", "--rate", "10MB", "--lists")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of(configs=BARE))
    fake.install(monkeypatch)
    return fake


def lists(leader: str | None, follower: str | None) -> dict[str, TopicConfig]:
    return {"t": TopicConfig(leader, follower, compacted=False), "still": UNLISTED}


def test_a_move_without_lists_gets_those_of_kafkas_tool() -> None:
    found = lists_plan(view_of(configs=BARE))
    assert (found.entries, found.every, found.partitions) == ({"t": BOTH}, {}, 1)


def test_a_replaced_replica_stays_in_the_leader_list_until_it_is_gone() -> None:
    # [1, 2] to [3, 2]: the replicas before the move, any of which may lead.
    replaced = replace(MOVING, replicas=(3, 2, 1), removing=(1,))
    assert lists_plan(view_of(partitions=(replaced,), configs=BARE)).entries == {"t": BOTH}


def test_only_entries_that_are_missing_are_added() -> None:
    assert lists_plan(view_of(configs=lists("7:1,0:2", None))).entries == {"t": TopicLists("0:1", "0:3")}
    assert lists_plan(view_of(configs=lists("0:1,0:2", "0:3,5:5"))).entries == {}


def test_a_list_of_every_replica_stays() -> None:
    found = lists_plan(view_of(configs=lists("*", None)))
    assert (found.entries, found.every) == ({"t": TopicLists(None, "0:3")}, {"t": ("leader",)})
    assert lists_json(found) == [
        {"topic": "t", "leader_added": None, "follower_added": "0:3", "every_replica": ["leader"]}
    ]


def test_a_partition_that_gains_no_replica_stays_off_the_lists() -> None:
    shrinking = replace(MOVING, partition=1, replicas=(1, 2), adding=(), removing=(2,))
    assert lists_plan(view_of(partitions=(MOVING, shrinking), configs=BARE)).entries == {"t": BOTH}
    with pytest.raises(HeadroomError, match=r"--lists: .*no running reassignment adds a replica"):
        lists_plan(view_of(partitions=(STILL, shrinking), configs=BARE))


def test_lists_that_could_not_be_read_are_not_extended() -> None:
    with pytest.raises(HeadroomError, match="topic t: its lists could not be read"):
        lists_plan(view_of(configs={"still": UNLISTED}))


def test_lists_come_first_and_then_the_rates(cluster: FakeCluster) -> None:
    result = run(*LISTS, "--execute")
    assert result.exit_code == 0, result.output
    rates = {(broker, role): 10 * MB for broker in (1, 2, 3) for role in ("leader", "follower")}
    assert cluster.changes == [{"t": ("0:1,0:2", "0:3")}, rates]
    assert "In the throttled replica lists, and read back: topics t." in result.stdout


def test_nothing_is_changed_without_execute(cluster: FakeCluster) -> None:
    shown = run(*LISTS)
    assert (shown.exit_code, cluster.changes) == (0, [])
    rows = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "t 0:1,0:2 0:3" in rows
    assert "headroom throttle apply --rate 10000000 --brokers 1,2,3 --lists --execute" in shown.stdout
    # It would be wrong: the lists are about to be set.
    assert "limits nothing" not in shown.stderr


def test_complete_lists_are_said_to_be_and_the_rates_are_set(cluster: FakeCluster) -> None:
    cluster.view = view_of(configs=lists("0:1,0:2", "0:3"))
    result = run(*LISTS, "--execute")
    assert "The throttled replica lists are complete" in result.stdout
    assert [len(change) for change in cluster.changes] == [6]  # type: ignore[arg-type]


def test_lists_alone_are_a_change_if_no_rate_has_to_be_raised(cluster: FakeCluster) -> None:
    # No broker has a rate, so --raise-only sets none.
    assert "To do it" in run(*LISTS, "--raise-only").stdout
    assert run(*LISTS, "--raise-only", "--execute").exit_code == 0
    assert cluster.changes == [{"t": ("0:1,0:2", "0:3")}]


def test_a_topic_that_refuses_is_the_error_at_the_end_and_the_rates_are_set(cluster: FakeCluster) -> None:
    cluster.refusing = {"t"}
    result = run(*LISTS, "--execute", "--format", "json")
    assert isinstance(result.exception, HeadroomError)
    text = json.loads(result.stdout)
    assert (text["failed"]["subject"], len(cluster.changes)) == ("topic t", 2)


def test_json_has_the_entries_or_null_without_lists(cluster: FakeCluster) -> None:
    (found,) = json.loads(run(*LISTS, "--format", "json").stdout)["lists"]
    assert found == {"topic": "t", "leader_added": "0:1,0:2", "follower_added": "0:3", "every_replica": []}
    assert json.loads(run("apply", "--rate", "10MB", "--format", "json").stdout)["lists"] is None


def test_a_rate_that_the_move_never_ends_at_is_noted(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without lists nothing counts yet, so required is 0 and the moving partitions alone say what it will be.
    leader = MoveNeed(1, "leader", None, 0.0, 0.0, 8.0 * MB, "unthrottled", 1, ())
    needs = ThrottleNeeds(NeedsSource.WATCH, 0, (leader, replace(leader, broker=3, role="follower")))
    monkeypatch.setattr(throttle_apply, "watch_needs", lambda settings: needs)
    low = run("apply", "--rate", "8MB", "--lists").stderr
    assert "Broker 1 as leader needs more than 8.00 MB/s: at 8.00 MB/s its moving partitions never get in sync." in low
    assert "Broker 3 as follower needs more" in low
    assert "needs more" not in run("apply", "--rate", "9MB", "--lists").stderr
    # Only a throttle that begins is checked: an alert reports one that is in force.
    assert "needs more" not in run("apply", "--rate", "8MB").stderr


def test_tables_that_cannot_be_read_stop_no_throttle(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: object) -> None:
        raise HeadroomError("the table", "cannot be read", "Look.")

    monkeypatch.setattr(throttle_apply, "watch_needs", broken)
    assert run(*LISTS, "--execute").exit_code == 0


def test_lists_need_a_rate(cluster: FakeCluster) -> None:
    assert run("apply", "--lists", "--log-dirs", "10MB").exit_code == 2
