"""Plan and result of ``headroom throttle apply``; the plan is complete, rate by rate, before anything is changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.model import BrokerThrottles
from headroom.cluster.throttles.broker_rates import rate_of
from headroom.cluster.throttles.rates import ROLES
from headroom.operations.throttles.lists_plan import ListsPlan
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.schemas.errors import HeadroomError

# Role of the rate of moves between a broker's own log directories.
LOG_DIRS = "log_dirs"
DOWN = "down"
SILENT = "did not report its rates"


class RateAction(str, Enum):
    """Change of one rate."""

    SET = "set"
    RAISE = "raise"
    KEEP = "keep"
    KEEP_UNLIMITED = "keep_unlimited"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PlannedRateChange:
    """Change of the rate of one broker in one role.

    Attributes:
        broker: broker id.
        role: leader, follower, or log_dirs for moves between the broker's log directories.
        action: set and raise change the rate; the other actions leave it.
        from_bytes_per_s: rate in force, the broker's own or the cluster default; None if not set, or unknown.
        to_bytes_per_s: rate in force afterwards; None if not set, or unknown.
    """

    broker: int
    role: str
    action: RateAction
    from_bytes_per_s: int | None
    to_bytes_per_s: int | None

    @property
    def changes(self) -> bool:
        """Whether the action changes the rate."""
        return self.action in (RateAction.SET, RateAction.RAISE)


@dataclass(frozen=True)
class ApplyPlan:
    """All changes that ``apply`` makes.

    Attributes:
        rate_bytes_per_s: requested rate of leader and follower; None if they stay as they are.
        raise_only: whether rates in force are never lowered.
        changes: one change per broker and role, in order.
        passed_over: reasons by skipped broker.
        log_dirs_bytes_per_s: requested rate of moves between log directories; None if it stays as it is.
        lists: changes of the throttled replica lists; None if they stay as they are.
    """

    rate_bytes_per_s: int | None
    raise_only: bool
    changes: tuple[PlannedRateChange, ...]
    passed_over: dict[int, str]
    log_dirs_bytes_per_s: int | None = None
    lists: ListsPlan | None = None

    def brokers(self) -> list[int]:
        """Return the brokers that are up, whether their rates change or not."""
        return list(dict.fromkeys(change.broker for change in self.changes))

    def rates(self) -> dict[tuple[int, str], int]:
        """Return the rates to set, bytes per second by broker and role."""
        changed = ((c.broker, c.role, c.to_bytes_per_s) for c in self.changes if c.changes)
        return {(broker, role): rate for broker, role, rate in changed if rate is not None}

    def empty(self) -> bool:
        """Return whether the plan changes nothing."""
        return not self.rates() and (self.lists is None or not self.lists.entries)

    def steps(self) -> list[JournalStep]:
        """Return the changes as steps of the journal."""
        return [
            JournalStep(
                StepKind.RATE,
                StepState.INTENDED,
                f"broker {c.broker} as {c.role}",
                None if c.from_bytes_per_s is None else str(c.from_bytes_per_s),
                None if c.to_bytes_per_s is None else str(c.to_bytes_per_s),
            )
            for c in self.changes
            if c.changes
        ]

    def unknown(self) -> list[int]:
        """Return the brokers that are up but did not report their rates, so that no rate may be raised."""
        return list(dict.fromkeys(c.broker for c in self.changes if c.action is RateAction.UNKNOWN))

    def unknown_error(self) -> HeadroomError | None:
        """Return an error that names the brokers with unknown rates; None without any."""
        if not self.unknown():
            return None
        subject = f"broker {', '.join(map(str, self.unknown()))}"
        remedy = "See that it is up and that this user may DescribeConfigs, then run the command again."
        return HeadroomError(subject, f"{SILENT}, so none was raised there", remedy)


@dataclass(frozen=True)
class ApplyResult:
    """Result of the command: the plan, and what came of it.

    Attributes:
        view: throttles in force before.
        plan: the plan.
        executed: whether the plan was executed.
        after: rates in force on the changed brokers, read back from each.
        error: error of the topics or brokers that could not be changed; None if there was none.
        listed: topics whose lists got entries, read back.
    """

    view: ThrottleState
    plan: ApplyPlan
    executed: bool
    after: Mapping[int, BrokerThrottles] = field(default_factory=dict)
    error: HeadroomError | None = None
    listed: Sequence[str] = ()


def apply_plan(
    view: ThrottleState,
    rate_bytes_per_s: int | None,
    wanted: Sequence[int] | None,
    roles: Collection[str] = ROLES,
    raise_only: bool = False,
    log_dirs_bytes_per_s: int | None = None,
    lists: ListsPlan | None = None,
) -> ApplyPlan:
    """Return the change of each rate.

    Args:
        view: throttles in force.
        rate_bytes_per_s: rate of leader and follower to set; None to leave both.
        wanted: brokers to set it on; all that take part in running moves if None.
        roles: leader, follower or both.
        log_dirs_bytes_per_s: rate of moves between log directories to set; None to leave it.
        lists: changes of the throttled replica lists; None to leave them.
        raise_only: set the rate only where a lower one is in force. A broker without a rate is unlimited, so any rate
            would lower it.

    Raises:
        HeadroomError: no broker can be set, or a wanted broker is not known to the cluster.
    """
    brokers, passed_over = brokers_to_set(view, wanted)
    rates = {role: rate_bytes_per_s for role in ROLES if role in roles} | {LOG_DIRS: log_dirs_bytes_per_s}
    changes = [
        _change(broker, role, view.of(broker), rate, raise_only)
        for broker in brokers
        for role, rate in rates.items()
        if rate is not None
    ]
    unknown = {c.broker: SILENT for c in changes if c.action is RateAction.UNKNOWN}
    return ApplyPlan(rate_bytes_per_s, raise_only, tuple(changes), passed_over | unknown, log_dirs_bytes_per_s, lists)


def _change(
    broker: int, role: str, rates: BrokerThrottles, wanted_bytes_per_s: int, raise_only: bool
) -> PlannedRateChange:
    now, _ = rate_of(rates, role)
    if not raise_only:
        return PlannedRateChange(broker, role, RateAction.SET, now, wanted_bytes_per_s)
    if not rates.known:
        return PlannedRateChange(broker, role, RateAction.UNKNOWN, None, None)
    if now is None:
        return PlannedRateChange(broker, role, RateAction.KEEP_UNLIMITED, None, None)
    if now >= wanted_bytes_per_s:
        return PlannedRateChange(broker, role, RateAction.KEEP, now, now)
    return PlannedRateChange(broker, role, RateAction.RAISE, now, wanted_bytes_per_s)


def brokers_to_set(view: ThrottleState, wanted: Sequence[int] | None) -> tuple[list[int], dict[int, str]]:
    """Return the brokers to set a rate on, and the reasons by skipped broker.

    The brokers are those wanted, or all that take part in running moves. A broker that is down is skipped, because only
    the broker itself changes its rate (Kafka 4.3.1, ``ConfigAdminManager.validateResourceNameIsCurrentNodeId``).

    Raises:
        HeadroomError: a wanted broker is not known to the cluster, none of them is up, or none is wanted and nothing
            moves.
    """
    if wanted is None and not view.participants():
        raise HeadroomError("--brokers", "is not given and no reassignment is running", "Name the brokers.")
    brokers = sorted(set(view.participants() if wanted is None else wanted))
    up = [broker for broker in brokers if view.alive(broker)]
    unknown = [broker for broker in brokers if broker not in view.known_brokers()]
    if unknown or not up:
        rule = "is not known to this cluster" if unknown else "is not up"
        names = ", ".join(map(str, unknown or brokers))
        others = ", ".join(str(b) for b in sorted(view.rates) if view.alive(b))
        raise HeadroomError(f"broker {names}", rule, f"Name others; up are: {others}.")
    return up, {broker: DOWN for broker in brokers if not view.alive(broker)}
