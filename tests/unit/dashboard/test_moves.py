"""Moves: each new replica, and why it is not in sync."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.dashboard.views.blocks import DataTable, Paragraph, Tone
from headroom.dashboard.views.moves import moves
from headroom.schemas.keys import Role
from headroom.schemas.tables import REASSIGNMENT_PROGRESS
from tests.unit.builders.dashboard_store import TICK_MS, DashboardStore, Row, at, new_replica, values
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

ENOUGH = status(1, Role.LEADER, 12, 10, partition())


def replicas(store: DashboardStore, **query: Any) -> DataTable:
    table, *_ = moves(store.site(), at(**query))
    assert isinstance(table, DataTable)
    return table


def only(store: DashboardStore, row: Row, *statuses: ThrottleStatus) -> Row:
    """Return the row of the page of a single new replica."""
    store.throttles(*(statuses or (ENOUGH,)))
    store.replicas(row)
    (shown,) = replicas(store).rows
    return shown


def test_without_a_tick_there_is_nothing_to_show(store: DashboardStore) -> None:
    (block,) = moves(store.site(), at())
    assert isinstance(block, Paragraph)
    assert (block.text, block.tone) == ("There is no tick to show.", Tone.UNKNOWN)


def test_a_tick_without_new_replicas_says_so(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, limited=0))
    assert (replicas(store).rows, replicas(store).empty) == ([], "No partition is in a reassignment.")


@pytest.mark.parametrize(("age_ms", "is_of_now"), [(60_000, True), (60_001, False)])
def test_new_replicas_of_a_watch_that_has_ended_are_the_state_of_then(
    store: DashboardStore, age_ms: int, is_of_now: bool
) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, "in_sync"))
    for site, address in (
        (store.site(TICK_MS + age_ms), at()),
        (store.site(TICK_MS + 9_000_000), at(at=TICK_MS + age_ms)),
    ):
        found = moves(site, address)
        said = [block.text for block in found if isinstance(block, Paragraph)]
        assert said == ([] if is_of_now else ["What follows is the state of 2027-01-15 08:00:00 UTC."])
        (replicas_shown,) = [block for block in found if isinstance(block, DataTable)]
        (state,) = [column for column in replicas_shown.columns if column.key == "state"]
        assert state.tone("in_sync") is (Tone.GOOD if is_of_now else Tone.UNKNOWN)


def test_new_replicas_that_are_written_later_are_those_of_the_tick_before(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    assert replicas(store).empty == "No new replica of the running reassignment is in the tables yet."
    store.replicas(new_replica())
    store.throttles(ENOUGH, tick_ms=TICK_MS + 1000)
    found = replicas(store)
    assert found.note == "Of the tick of 08:00:00 UTC: those of the newest one are not written yet."
    # 60 s from their own tick on.
    assert values(found.rows, "name", "finish_ms") == [("t-0", TICK_MS + 60_000)]


def test_a_moment_of_then_is_not_read_again_when_something_is_committed(store: DashboardStore) -> None:
    for tick_ms in (TICK_MS, TICK_MS + 1, TICK_MS + 60_000):
        store.throttles(ENOUGH, tick_ms=tick_ms)
        store.replicas(new_replica(), tick_ms=tick_ms)
    site = store.site()
    addresses = at(at=TICK_MS), at(at=TICK_MS + 1), at()
    before = [site.moment(address) for address in addresses]
    assert [site.moment(address) is moment for address, moment in zip(addresses, before, strict=True)] == [True] * 3
    store.replicas(new_replica(1), tick_ms=TICK_MS + 60_000)
    # A minute before the newest tick, less than a minute, and that tick.
    after = [site.moment(address) for address in addresses]
    assert [moment is known for moment, known in zip(after, before, strict=True)] == [True, False, False]
    assert [len(moment.replicas) for moment in after if moment is not None] == [1, 1, 2]


def test_new_replicas_that_come_late_are_shown_at_their_moment(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.throttles(ENOUGH, tick_ms=TICK_MS + 3_600_000)
    site = store.site(TICK_MS + 3_600_000)
    assert site.moment(at()) is not None
    for replicas_there in (0, 1):
        moment = site.moment(at(at=TICK_MS))
        assert moment is not None
        assert len(moment.replicas) == replicas_there
        store.replicas(new_replica())


def test_a_row_has_the_values_of_its_table(store: DashboardStore) -> None:
    given = new_replica(7, eta_s=90.5, topic="orders", adding_replica=4, leader=2, lag_offsets=12)
    row = only(store, given)
    same = ("topic", "partition", "adding_replica", "leader", "state", "remaining_bytes", "lag_offsets", "eta_s")
    for key in (*same, "catch_up_bytes_per_s", "write_bytes_per_s"):
        assert row[key] == given[key]
    assert row["name"] == "orders-7"
    assert row["finish_ms"] == TICK_MS + 90_500


def test_replicas_before_and_after_follow_from_those_that_are_added_and_removed(store: DashboardStore) -> None:
    # Brokers 4 and 5 replace 1; 2 and 3 stay. Both new replicas are left out of what was before.
    row: dict[str, Any] = {"replicas": [4, 5, 2, 3, 1], "removing": [1]}
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, adding_replica=4, **row), new_replica(0, adding_replica=5, **row))
    expected = ("2,3,1", "4,5,2,3")
    assert values(replicas(store).rows, "from_replicas", "to_replicas") == [expected, expected]


@pytest.mark.parametrize(
    ("remaining_bytes", "log_bytes", "state", "ratio"),
    [
        (25_000_000, 100_000_000, "catching_up", 0.75),
        (100_000_000, 100_000_000, "catching_up", 0.0),
        # More is left than the leader's log had when its size was read.
        (120_000_000, 100_000_000, "catching_up", 0.0),
        (None, 100_000_000, "no_data", None),
        (5, None, "catching_up", None),
        (5, 0, "catching_up", None),
        (None, None, "in_sync", 1.0),
    ],
)
def test_the_done_share_is_that_of_the_leaders_log(
    store: DashboardStore, remaining_bytes: int | None, log_bytes: int | None, state: str, ratio: float | None
) -> None:
    given = new_replica(0, state, remaining_bytes=remaining_bytes, leader_log_bytes=log_bytes)
    assert only(store, given)["done_ratio"] == ratio


def test_those_that_never_end_come_first_and_those_in_sync_last(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(
        new_replica(0, "in_sync", 0.0),
        new_replica(1, eta_s=10.0),
        new_replica(2, "no_data"),
        new_replica(3, eta_s=99.0),
        new_replica(4, "never"),
        new_replica(5, "a word of a newer version"),
    )
    assert values(replicas(store).rows, "partition") == [(4,), (2,), (5,), (3,), (1,), (0,)]


def test_filters_by_topic_and_state_say_how_many_match(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, topic="orders"), new_replica(1, topic="orders-dlq"), new_replica(2, "never"))
    assert replicas(store).note == ""
    found = replicas(store, topic="orders")
    assert (values(found.rows, "name"), found.note) == (
        [("orders-0",), ("orders-dlq-1",)],
        "2 of 3 new replicas match.",
    )
    assert values(replicas(store, topic="dlq", state="catching_up").rows, "name") == [("orders-dlq-1",)]
    none = replicas(store, topic="ORDERS")
    assert (none.rows, none.empty) == ([], "No new replica matches.")
    assert values(replicas(store, state="never").rows, "name") == [("t-2",)]


def test_a_throttle_that_is_too_low_is_the_reason(store: DashboardStore) -> None:
    too_low = status(1, Role.LEADER, 5.6, 8, partition(), in_sync_mb=6)
    assert only(store, new_replica(0, "never"), too_low)["reason"] == (
        "broker 1 as leader: throttle 5.60 MB/s, in-sync followers use 6.00 MB/s, all followers require 8.00 MB/s"
    )


def test_both_ends_of_a_copy_may_be_the_reason(store: DashboardStore) -> None:
    leader = status(1, Role.LEADER, 5.6, 8, partition(), in_sync_mb=6)
    follower = status(3, Role.FOLLOWER, 1, 8, partition(), in_sync_mb=6)
    reason = only(store, new_replica(0, "never"), leader, follower)["reason"]
    assert reason.split("; ")[0].startswith("broker 1 as leader: ")
    assert reason.split("; ")[1].startswith("broker 3 as destination: ")


def test_other_brokers_are_no_reason(store: DashboardStore) -> None:
    others = [status(1, Role.FOLLOWER, 1, 8, in_sync_mb=6), status(3, Role.LEADER, 1, 8, in_sync_mb=6)]
    assert only(store, new_replica(0, "never"), *others)["reason"] is None


def test_a_partition_without_a_leader_is_its_own_reason(store: DashboardStore) -> None:
    assert only(store, new_replica(0, "no_data", leader=None))["reason"] == "the partition has no leader"


def test_a_stalled_destination_is_the_reason(store: DashboardStore) -> None:
    stalled = status(3, Role.FOLLOWER, 12, 8, partition(stalled=True), stall="offline")
    reason = only(store, new_replica(0, "never"), ENOUGH, stalled)["reason"]
    assert reason == "broker 3 as destination copies nothing (offline)"


def test_a_missing_verdict_is_the_reason_that_it_is_unknown(store: DashboardStore) -> None:
    unread = status(3, Role.FOLLOWER, 12, None, partition())
    reason = only(store, new_replica(0, "no_data"), ENOUGH, unread)["reason"]
    assert reason == "no verdict on broker 3 as destination (write rate unknown of 1 partition(s))"


def test_a_frozen_gauge_is_said_unless_it_is_over(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, frozen=True), new_replica(1, "in_sync", 0.0, frozen=True), new_replica(2))
    reasons = dict(values(replicas(store).rows, "partition", "reason"))
    assert reasons == {0: "its lag gauge stands still", 1: None, 2: None}


NEWER = ("replicas", "removing", "leader_log_bytes")
OLDER = replace(REASSIGNMENT_PROGRESS, columns=tuple(c for c in REASSIGNMENT_PROGRESS.columns if c.name not in NEWER))


def test_a_table_of_an_older_version_has_no_replicas_before_and_after(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    row = {key: value for key, value in new_replica().items() if key not in NEWER}
    store.rows(OLDER, {"cluster": "prod", "tick_ms": TICK_MS, **row})
    (shown,) = replicas(store).rows
    assert (shown["from_replicas"], shown["to_replicas"], shown["done_ratio"]) == (None, None, None)
    assert (shown["name"], shown["eta_s"]) == ("t-0", 60.0)
    cells = Markup(store.client().get("/moves").text).texts("td")
    assert cells[-2:] == ["unknown", "unknown"]


def test_rows_of_an_older_version_in_a_newer_table_are_as_unknown(store: DashboardStore) -> None:
    older: dict[str, Any] = dict.fromkeys(NEWER)
    row = only(store, new_replica(0, **older))
    assert (row["from_replicas"], row["to_replicas"], row["done_ratio"]) == (None, None, None)


def test_ids_of_brokers_are_names_without_separators(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, adding_replica=1003, leader=1001, lag_offsets=12_345))
    cells = Markup(store.client().get("/moves").text).texts("td")
    assert {"1003", "1001", "12,345"} <= set(cells)
