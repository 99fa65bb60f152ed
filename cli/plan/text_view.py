"""Text output of ``headroom plan``: a verdict in one line, the need of every broker, then times, what-ifs, warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from headroom.cli.common.output import echo, print_first_rows
from headroom.cli.plan.batches import print_batches
from headroom.operations.plans.result import PlanResult
from headroom.planning.log_dirs.duration import DirectoryEstimate
from headroom.planning.reassignments.estimate import ThrottleNeed
from headroom.planning.reassignments.timing import TimeEstimate
from headroom.planning.reassignments.what_if import ReturnCase
from headroom.schemas.keys import BrokerRole, Role
from headroom.schemas.text.amounts import UNKNOWN, duration_range_text, duration_text, rate_text, size_text
from headroom.schemas.text.names import broker_names

# Rows printed of each table; a large cluster has more than an operator reads.
MAX_ROWS = 20
_MAX_NAMED = 5
_NEVER = "never"


def print_result(result: PlanResult) -> None:
    """Print the result: verdict, tables and warnings."""
    estimate = result.estimate
    echo(verdict(result))
    echo(_summary(result))
    echo()
    needs = list(estimate.needs)
    if len(needs) > MAX_ROWS:
        # Not all are shown, so the greatest come first.
        needs.sort(key=lambda need: -need.known_required_bytes_per_s)
    _print("Need by broker and role", _NEEDS, [_need_row(need) for need in needs])
    for line in (*_usual_rule_lines(result), *(f"Note: {warning}" for warning in result.warnings())):
        echo(line)
    echo()
    added, removed = estimate.changes.added, estimate.changes.removed
    replicas = [(str(b), f"{added.get(b, 0):,}", f"{removed.get(b, 0):,}") for b in sorted({*added, *removed})]
    _print("Replicas", ("broker", "added", "removed"), replicas)
    _print(DIRECTORIES_TITLE, DIRECTORIES, [directory_row(moves) for moves in result.directories])
    times = [
        (rate_text(time.throttle_bytes_per_s), _finish(time), "" if time.bottleneck is None else _role(time.bottleneck))
        for time in estimate.times
    ]
    _print("Time by throttle", ("throttle", "done in", "bottleneck"), times)
    for line in _what_if_lines(result):
        echo(line)
    echo()
    _print("Leader switches that make the throttle too low", _SWITCHES, list(_switch_rows(result)))
    _print("Lost brokers that make the throttle too low", _LOSSES, list(_loss_rows(result)))
    _print("Brokers whose return makes the throttle too low", _RETURNS, list(_return_rows(result)))
    print_batches(result)


_NEEDS = ("broker", "role", "copies", "to copy", "in-sync use", "required", "recommended", "in force", "done alone in")
DIRECTORIES_TITLE = "Moves between log directories"
DIRECTORIES = ("broker", "replicas", "to copy", "throttle", "done in")
_SWITCHES = ("partition", "leader", "then", "too low on", "requires", "short by")
_RETURNS = ("back", "too low on", "requires", "short by")
_LOSSES = ("lost", "too low on", "requires", "short by", "copies that stop", "partitions without a leader")


def verdict(result: PlanResult) -> str:
    """Return in one line whether the move fits, its throttle, its time and bottleneck, and what its end waits for."""
    # Whatever the throttle, such a move cannot end without these brokers.
    certain = sorted({awaited.broker for awaited in result.awaited_brokers if awaited.is_certain})
    if certain:
        return f"Does not fit: it ends only when {_back(certain)} (see the notes)."
    possible = sorted({awaited.broker for awaited in result.awaited_brokers})
    later = f" Before Kafka 4.3 it ends only when {_back(possible)} (see the notes)." if possible else ""
    if result.awaiting_leader:
        count = len(result.awaiting_leader)
        later += f" Copies of {count:,} partition{'s' * (count != 1)} wait for their leaders (see the notes)."
    return _copy_verdict(result) + later


def _back(brokers: Sequence[int]) -> str:
    return f"{broker_names(brokers, _MAX_NAMED)} {'is' if len(brokers) == 1 else 'are'} back"


def _copy_verdict(result: PlanResult) -> str:
    estimate, time = result.estimate, result.estimate.time
    if not estimate.changes.gaining:
        between = "Nothing is copied between brokers" if result.directories else "Nothing is copied"
        return f"{between}: no partition gains a replica, so no throttle is needed."
    if estimate.throttle_bytes_per_s is None:
        return _without_throttle(result)
    throttle = rate_text(estimate.throttle_bytes_per_s)
    if estimate.is_enough is False:
        need = max(estimate.needs, key=lambda need: need.known_required_bytes_per_s)
        ends = "will not finish" if time is None or time.finish is None else "is too slow"
        after = "" if time is None or time.finish is None else f" (done in {_finish(time)})"
        return (
            f"{_no(result)}: at {throttle} the move {ends}{after}; {_role(need.broker_role)} requires "
            f"{rate_text(need.known_required_bytes_per_s)}.{_remedy(result)}"
        )
    # Enough by the formula, but in the simulation the copies never catch up.
    if time is not None and time.known and time.finish is None:
        close = "is too close to what is required; the move will not finish"
        return f"{_no(result)}: {throttle} {close}.{_remedy(result)}"
    if estimate.is_enough is None or time is None or not time.known:
        return f"Unknown whether it fits at {throttle}: sizes or write rates are unknown (see the notes)."
    bottleneck = "" if time.bottleneck is None else f"; bottleneck: {_role(time.bottleneck)}"
    if result.misses_deadline:
        late = f"at {throttle} the move is done in {_finish(time)}"
        within = duration_text(result.policy.finish_within_s)
        return f"{_no(result)}: {late}, not within {within}{bottleneck}.{_remedy(result)}"
    return f"It fits: at {throttle} on every broker the move is done in {_finish(time)}{bottleneck}."


def _no(result: PlanResult) -> str:
    return f"Does not fit{' in one batch' if result.cut is not None and result.cut.chosen.batches > 1 else ''}"


def _without_throttle(result: PlanResult) -> str:
    recommendation = result.estimate.recommendation
    if recommendation is None:
        return "Unknown when it is done: no throttle limits the copies."
    if recommendation.unknown:
        least = max(need.known_required_bytes_per_s for need in result.estimate.needs)
        return (
            f"Unknown whether it fits: write rates are unknown; a throttle has to exceed at least {rate_text(least)}."
        )
    return (
        f"{_no(result)}: a throttle has to exceed {rate_text(recommendation.smallest_bytes_per_s)}, and "
        f"cluster.replication_capacity is {rate_text(result.policy.most_bytes_per_s)}.{_remedy(result)}"
    )


def _remedy(result: PlanResult) -> str:
    """Return, in a sentence, what would make a plan fit that does not in one batch."""
    if result.cut is not None:
        # The lines on the batches say what becomes of these.
        return ""
    way = result.would_fit
    if way is None:
        if result.in_flight:
            # What runs already cannot be cut into batches.
            return " Cancel a part of it, and move that later."
        more = "." if result.policy.finish_within_s is None else ", or allow more time."
        return f" No number of batches would: move it when less is written{more}"
    if way.batches == 1:
        return f" Recommended: {rate_text(way.throttle_bytes_per_s)}."
    return (
        f" In {way.batches:,} batches it fits (--batches {way.batches}): at {rate_text(way.throttle_bytes_per_s)} they "
        f"take {duration_text(way.finish_s)} in all."
    )


def _summary(result: PlanResult) -> str:
    estimate, state = result.estimate, result.state
    runs = "being reassigned" if result.in_flight else "in the plan"
    return (
        f"Cluster {state.cluster}: {len(result.plan):,} partitions {runs}, {len(estimate.changes.gaining):,} of them "
        f"gain a replica; {size_text(estimate.copied_bytes)} to copy. Write rates: {state.rates_from}."
    )


def _usual_rule_lines(result: PlanResult) -> Iterator[str]:
    usual, recommendation = result.estimate.usual_rule_bytes_per_s, result.estimate.recommendation
    least = None if recommendation is None else recommendation.smallest_bytes_per_s
    if usual is None or least is None:
        return
    # Operators know this rule. Where it misleads, they should see it beside the rate that counts.
    enough = "which is not enough here" if usual <= least else "more than is required here"
    yield f"The usual rule asks for more than the highest write rate of a broker: {rate_text(usual)}, {enough}."


def _print(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    print_first_rows(title, header, rows, MAX_ROWS)
    echo()


def _need_row(need: ThrottleNeed) -> tuple[str, ...]:
    in_force = need.in_force_bytes_per_s
    # Without the write rate of one partition the sum of the others is only a lower bound.
    least = "" if need.required_bytes_per_s is not None else "at least "
    return (
        str(need.broker_role.broker),
        _role_name(need.broker_role.role),
        f"{need.copies:,}",
        size_text(need.remaining_bytes),
        rate_text(need.in_sync_bytes_per_s),
        least + rate_text(need.known_required_bytes_per_s),
        "none" if need.recommended_bytes_per_s is None else rate_text(need.recommended_bytes_per_s),
        "none" if in_force is None else rate_text(in_force),
        _alone(need.alone_s),
    )


def _alone(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    return _NEVER if math.isinf(seconds) else duration_text(seconds)


def directory_row(moves: DirectoryEstimate) -> tuple[str, ...]:
    """Return the row of one broker that moves replicas between its log directories."""
    rate = "none" if moves.rate_bytes_per_s is None else rate_text(moves.rate_bytes_per_s)
    if moves.time is None:
        time = UNKNOWN
    else:
        time = _NEVER if moves.time.low_s is None else duration_range_text(moves.time.low_s, moves.time.high_s)
    return (str(moves.broker), f"{moves.replicas:,}", size_text(moves.size_bytes), rate, time)


def _finish(time: TimeEstimate) -> str:
    if time.finish is None:
        return _NEVER if time.known else UNKNOWN
    return duration_range_text(time.finish.low_s, time.finish.high_s)


def _what_if_lines(result: PlanResult) -> Iterator[str]:
    estimate = result.estimate
    expected = estimate.expected_switches
    if expected:
        first = expected[0]
        more = f" and of {len(expected) - 1:,} more" if len(expected) > 1 else ""
        certain = "Kafka switches" if result.state.auto_leader_rebalance else "Kafka may switch"
        yield (
            f"{certain} the leader of {first.partition} from broker {first.leader} to {first.next_leader}{more} within "
            "minutes, because the first target replica is in sync (auto.leader.rebalance.enable). The figures cover "
            "the leaders before and after."
        )
    effects = estimate.what_if
    if not estimate.needs or not (effects.switches or effects.returns):
        return
    # Counted from the rows of the tables below, so that text and tables agree.
    losses, returns = (sum(1 for _ in rows) for rows in (_loss_rows(result), _return_rows(result)))
    if estimate.throttle_bytes_per_s is not None:
        survives = estimate.survives_bytes_per_s
        rate = f" A throttle of {rate_text(survives)} survives any single one." if survives is not None else ""
        yield (
            f"What if: {effects.short_switches:,} of {effects.switches:,} single leader switches and {losses:,} of "
            f"{len(effects.losses):,} lost brokers make the throttle too low."
            + (_returns_text(effects.returns, returns) if effects.returns else "")
            + (rate if effects.short_switches or losses or returns else "")
        )
    if effects.unknown_switches:
        yield f"Of {effects.unknown_switches:,} switches the effect is partly unknown, because write rates are."


def _returns_text(returns: Sequence[ReturnCase], short: int) -> str:
    if len(returns) == 1:
        return f" So does the return of broker {returns[0].broker}." if short else ""
    return f" So does the return of {short:,} of {len(returns):,} brokers that are down."


def _return_rows(result: PlanResult) -> Iterator[tuple[str, ...]]:
    throttle = result.estimate.throttle_bytes_per_s
    if throttle is None:
        return
    for case in result.estimate.what_if.returns:
        if case.required_bytes_per_s >= throttle:
            requires, short = case.required_bytes_per_s, case.required_bytes_per_s - throttle
            yield f"broker {case.broker}", _role(case.broker_role), rate_text(requires), rate_text(short)


def _switch_rows(result: PlanResult) -> Iterator[tuple[str, ...]]:
    throttle = result.estimate.throttle_bytes_per_s
    for case in result.estimate.what_if.worst_switches:
        yield (
            str(case.partition),
            str(case.leader),
            str(case.next_leader),
            _role(case.broker_role),
            rate_text(case.required_bytes_per_s),
            rate_text(case.required_bytes_per_s - (throttle or 0)),
        )


def _loss_rows(result: PlanResult) -> Iterator[tuple[str, ...]]:
    throttle = result.estimate.throttle_bytes_per_s
    if throttle is None:
        return
    for case in result.estimate.what_if.losses:
        if case.broker_role is not None and case.required_bytes_per_s >= throttle:
            yield (
                f"broker {case.broker}",
                _role(case.broker_role),
                rate_text(case.required_bytes_per_s),
                rate_text(case.required_bytes_per_s - throttle),
                f"{case.stopped_copies:,}",
                f"{case.leaderless:,}",
            )


def _role(broker_role: BrokerRole) -> str:
    return f"broker {broker_role.broker} as {_role_name(broker_role.role)}"


def _role_name(role: Role) -> str:
    return "leader" if role is Role.LEADER else "destination"
