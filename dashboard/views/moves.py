"""Moves: every new replica, how much of it is there, and when it is in sync or why it never will be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.commands import changing_command
from headroom.dashboard.acting.actions import ChosenAction
from headroom.dashboard.address import Address, View
from headroom.dashboard.data.moment import ClusterMoment, NewReplica, moment_after
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import (
    NO_TICK,
    Block,
    Commands,
    DataColumn,
    DataTable,
    Facts,
    Kind,
    Row,
    RunningMove,
    Term,
    Tone,
    without_tones,
)
from headroom.dashboard.views.headline import bottleneck_text, state_of_then
from headroom.dashboard.views.runs import carried_out_now, moving_actions, taking_back, unfinished_moves
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from headroom.schemas.reassigned import before_of, target_of
from headroom.schemas.text.amounts import UNKNOWN, clock_text, moment_text, percent_text, rate_text
from headroom.streaming.store.single_instance import run_job, running_process

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
    DataColumn("finish_ms", "in sync at", Kind.MOMENT, none="–"),
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
    moment = site.moment(address)
    cards = [] if address.at is not None else [*_running(site, address, moment)]
    running: list[Block] = [*cards, *carried_out_now(site, address)]
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
    of_then = state_of_then(site, address, moment.tick_ms)
    columns = without_tones(_COLUMNS) if of_then else _COLUMNS
    table = DataTable("replicas", "New replicas", columns, rows, empty, " ".join(notes))
    blocks: list[Block] = [*running, *of_then, table]
    # What moves need not be that of a run that was interrupted.
    if moment.is_moving and address.at is None and not any(card.is_under_way for card in cards):
        blocks.append(_cancelling(site, address))
    return blocks


def _cancelling(site: Site, address: Address) -> Commands:
    config = site.watched(site.cluster(address)).config
    return Commands("Cancel all running moves", [changing_command(["reassign cancel --all"], config)])


def _running(site: Site, address: Address, moment: ClusterMoment | None) -> Iterator[RunningMove]:
    """Yield the moves in flight: runs that have not ended, and actions of this page whose run is not under way.

    Raises:
        HeadroomError: a table cannot be read.
    """
    actions, unfinished = moving_actions(site, address), unfinished_moves(site, address)
    # What an earlier tick shows says nothing of now.
    of_now = moment if site.view_time(address).is_current else None
    rate, bounds = _throttle_bounds(site, address, of_now)
    throttle_url = address.url(View.THROTTLES, rate=rate, page=None, sort=None)
    process = running_process(site.settings.store, run_job(site.cluster(address))) if unfinished else None
    own = next((one for one in actions if process is not None and process.pid == one.pid), None)
    for action in actions:
        if action is not own:
            state = "It has no run under way: it begins, or is about to end."
            facts = Facts(_said_by(action))
            yield RunningMove(action.text, state, Tone.QUIET, facts, throttle_url, bounds, [], *_action_of(action))
    for number, run in enumerate(unfinished):
        title = f"{run['command']} {run['run_id']}, begun at {moment_text(run['began_ms'])} by {run['by']}"
        done, back = _done(site, address, run["run_id"]), taking_back(site, address, run["run_id"])
        # One run at a time changes a cluster: the others were interrupted.
        if number > 0 or process is None:
            state = "No process of this machine carries it on: it was interrupted, or runs elsewhere."
            yield RunningMove(title, state, Tone.UNKNOWN, Facts(done), throttle_url, bounds, [back])
            continue
        state = "Carried out by this page."
        if own is None:
            state = f"Carried out by {process}: Ctrl-C there stops it after the current batch."
        facts = Facts([*_said_by(own), *done, *_copied(of_now, run["began_ms"])])
        later = replace(back, lead=f"Once it has stopped: {back.lead[0].lower()}{back.lead[1:]}")
        commands = [_cancelling(site, address), later]
        yield RunningMove(title, state, Tone.GOOD, facts, throttle_url, bounds, commands, *_action_of(own))


def _said_by(action: ChosenAction | None) -> list[Term]:
    """Return the last line of what a move prints: its batch, and how far that is."""
    lines = [] if action is None else [line.strip() for line in action.output.splitlines() if line.strip()]
    return [Term("It says", lines[-1])] if lines else []


def _action_of(action: ChosenAction | None) -> tuple[str | None, bool]:
    return (None, False) if action is None else (f"/actions/{action.action_id}", not action.is_stopping)


def _done(site: Site, address: Address, run_id: str) -> list[Term]:
    progress = site.journal.progress(site.cluster(address), run_id)
    of = "" if progress.partitions is None else f" of {progress.partitions:,}"
    batches = [] if progress.batches is None else [Term("Batches", f"{progress.batches:,} in all")]
    return [Term("Partitions done", f"{progress.finished:,}{of}"), *batches]


def _copied(moment: ClusterMoment | None, began_ms: int) -> list[Term]:
    """Return which share of what moves now is copied, and when it is done; unknown if that of one replica is.

    Args:
        moment: the tick of now; None if there is none.
        began_ms: begin of the run, epoch milliseconds: what was read before it is of another move.
    """
    if moment is None or moment.replicas_ms < began_ms:
        return [Term("Copied of what moves now", UNKNOWN), Term("Finish", UNKNOWN)]
    sizes = [(one.leader_log_bytes, 0 if one.in_sync else one.remaining_bytes) for one in moment.replicas]
    known = [(whole, left) for whole, left in sizes if whole is not None and left is not None]
    whole, left = sum(whole for whole, _ in known), sum(left for _, left in known)
    share = percent_text(min(1.0, max(0.0, 1 - left / whole))) if whole and len(known) == len(sizes) else UNKNOWN
    finish = UNKNOWN if moment.finish is None else moment.finish.text(None)
    return [Term("Copied of what moves now", share), Term("Finish", finish)]


def _throttle_bounds(site: Site, address: Address, moment: ClusterMoment | None) -> tuple[str | None, str]:
    """Return a throttle to begin with, as text of an address, and between which rates one may be set."""
    capacity = site.watched(site.cluster(address)).settings.cluster.replication_capacity
    most = "cluster.replication_capacity is not set" if capacity is None else f"at most {rate_text(capacity)}"
    limited = [] if moment is None else [status.load for status in moment.statuses if status.load.needs_throttle]
    required = [load.lasting_required_bytes_per_s for load in limited]
    known = [one for one in required if one is not None]
    least = "what it must exceed is unknown"
    if known:
        others = "" if len(known) == len(required) else ", and what is unknown"
        least = f"it must exceed {rate_text(max(known))}{others}"
    in_force = [load.throttle_bytes_per_s for load in limited if load.throttle_bytes_per_s is not None]
    return (str(round(max(in_force))) if in_force else None), f"{least[0].upper()}{least[1:]}; {most}."


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
