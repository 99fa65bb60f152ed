"""Moves: every new replica, how much of it is there, and when it is in sync or why it never will be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.commands import changing_command
from headroom.dashboard.address import Address
from headroom.dashboard.data.moment import ClusterMoment, NewReplica, moment_after
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import NO_TICK, Block, Commands, DataColumn, DataTable, Kind, Row, Tone
from headroom.dashboard.views.headline import bottleneck_text
from headroom.dashboard.views.runs import carried_out_now
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from headroom.schemas.reassigned import before_of, target_of
from headroom.schemas.text.amounts import clock_text

STATE_TONES = {
    "in_sync": Tone.GOOD,
    "catching_up": Tone.QUIET,
    "never": Tone.CRITICAL,
    "no_data": Tone.UNKNOWN,
}
_COLUMNS = (
    DataColumn("name", "partition"),
    DataColumn("state", "state", Kind.STATE, tones=STATE_TONES),
    DataColumn("done_ratio", "done", Kind.SHARE),
    DataColumn("eta_s", "in sync in", Kind.DURATION, none="–"),
    DataColumn("finish_ms", "in sync at", Kind.CLOCK, none="–"),
    DataColumn("reason", "why", none="", is_long=True),
    DataColumn("remaining_bytes", "left to copy", Kind.SIZE),
    DataColumn("catch_up_bytes_per_s", "gain", Kind.RATE),
    DataColumn("lag_offsets", "lag, offsets", Kind.NUMBER),
    DataColumn("write_bytes_per_s", "written", Kind.RATE),
    DataColumn("adding_replica", "new on broker", Kind.ID),
    DataColumn("leader", "leader", Kind.ID, none="no leader"),
    DataColumn("from_replicas", "from"),
    DataColumn("to_replicas", "to"),
)


def moves(site: Site, address: Address) -> Sequence[Block]:
    """Return the new replicas of an address, those that end last or never first.

    Raises:
        HeadroomError: a table cannot be read.
    """
    moment, running = site.moment(address), carried_out_now(site, address)
    if moment is None:
        return [*running, NO_TICK]
    rows = [row for row in _rows(moment) if address.shows(row["topic"], row["state"])]
    filtered = len(rows) < len(moment.replicas)
    notes = [f"{len(rows)} of {len(moment.replicas)} new replicas match."] if filtered else []
    if moment.replicas_ms < moment.tick_ms:
        notes.append(f"Of the tick of {clock_text(moment.replicas_ms)}: those of the newest one are not written yet.")
    empty = "No new replica matches." if filtered else "No partition is in a reassignment."
    if moment.is_moving and not moment.replicas:
        empty = "No new replica of the running reassignment is in the tables yet."
    blocks: list[Block] = [*running, DataTable("replicas", "New replicas", _COLUMNS, rows, empty, " ".join(notes))]
    if moment.is_moving and address.at is None:
        config = site.watched(site.cluster(address)).config
        blocks.append(Commands("Cancel all running moves", [changing_command(["reassign cancel --all"], config)]))
    return blocks


def _rows(moment: ClusterMoment) -> list[Row]:
    statuses = {status.load.broker_role: status for status in moment.statuses}
    adding: dict[TopicPartition, set[int]] = defaultdict(set)
    for replica in moment.replicas:
        adding[replica.name].add(replica.adding_replica)
    rows = [_row(replica, adding[replica.name], moment.replicas_ms, statuses) for replica in moment.replicas]
    order = {"never": 0, "no_data": 1, "catching_up": 2, "in_sync": 3}
    return sorted(rows, key=lambda row: (order.get(row["state"], 1), -(row["eta_s"] or 0.0)))


def _row(
    replica: NewReplica, adding: Collection[int], tick_ms: int, statuses: Mapping[BrokerRole, ThrottleStatus]
) -> Row:
    before = after = None
    if replica.replicas is not None and replica.removing is not None:
        after = target_of(replica.replicas, replica.removing)
        before = before_of(replica.replicas, adding)
    return {
        "name": str(replica.name),
        "topic": replica.topic,
        "partition": replica.partition,
        "from_replicas": before and ",".join(map(str, before)),
        "to_replicas": after and ",".join(map(str, after)),
        "adding_replica": replica.adding_replica,
        "leader": replica.leader,
        "state": replica.state,
        "done_ratio": replica.done_ratio,
        "remaining_bytes": replica.remaining_bytes,
        "lag_offsets": replica.lag_offsets,
        "catch_up_bytes_per_s": replica.catch_up_bytes_per_s,
        "write_bytes_per_s": replica.write_bytes_per_s,
        "eta_s": replica.eta_s,
        "finish_ms": moment_after(tick_ms, replica.eta_s),
        "reason": _reason(replica, statuses),
    }


def _reason(replica: NewReplica, statuses: Mapping[BrokerRole, ThrottleStatus]) -> str | None:
    """Return why a replica is not in sync one day, or why that is unknown; None if nothing is in its way."""
    if replica.in_sync or replica.state == "catching_up":
        return "its lag gauge stands still" if replica.frozen and not replica.in_sync else None
    if replica.leader is None:
        return "the partition has no leader"
    ends = (BrokerRole(replica.leader, Role.LEADER), BrokerRole(replica.adding_replica, Role.FOLLOWER))
    own = [statuses[end] for end in ends if end in statuses]
    too_low = [bottleneck_text(status) for status in own if status.too_low]
    stalls = [f"{s.subject} copies nothing ({s.stall})" for s in own if s.stall is not None]
    unread = [f"no verdict on {s.subject} ({s.reason})" for s in own if s.reason is not None]
    return "; ".join([*too_low, *stalls, *unread]) or None
