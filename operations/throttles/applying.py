"""Setting throttles: the plan of all changes, and their execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.throttles.rate_change import RatesError
from headroom.cluster.throttles.rates import ROLES, apply_rates
from headroom.cluster.throttles.replica_lists import append_lists
from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.progress import OnText
from headroom.operations.throttles.apply_plan import ApplyPlan, ApplyResult, apply_plan
from headroom.operations.throttles.lists_plan import lists_plan
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

_COMMAND = "throttle apply"


@dataclass(frozen=True)
class ApplyRequest:
    """Throttles to set.

    Attributes:
        rate_bytes_per_s: rate of leaders and followers; None: these stay as they are.
        brokers: brokers to set it on; None: all that take part in running moves.
        roles: leader, follower or both.
        raise_only: whether only lower rates are raised.
        log_dirs_bytes_per_s: rate of moves between log directories; None: it stays as it is.
        lists: whether running moves are added to the throttled replica lists.
    """

    rate_bytes_per_s: int | None = None
    brokers: Sequence[int] | None = None
    roles: Sequence[str] = ROLES
    raise_only: bool = False
    log_dirs_bytes_per_s: int | None = None
    lists: bool = False


def plan_throttle(view: ThrottleState, request: ApplyRequest) -> ApplyPlan:
    """Return all changes that a request makes.

    Args:
        view: throttles in force.
        request: throttles to set.

    Raises:
        HeadroomError: no broker can be set, one is not known to the cluster, or no list can be extended.
    """
    return apply_plan(
        view,
        request.rate_bytes_per_s,
        request.brokers,
        request.roles,
        request.raise_only,
        request.log_dirs_bytes_per_s,
        lists_plan(view) if request.lists else None,
    )


def apply_throttle(
    settings: Settings, view: ThrottleState, plan: ApplyPlan, on_step: OnText, on_note: OnText
) -> ApplyResult:
    """Extend the lists, then set the rates; the failure of a topic or broker does not stop the others.

    Args:
        settings: all settings.
        view: throttles in force before.
        plan: changes to make.
        on_step: gets one line per step.
        on_note: gets a sentence if the change is not in the journal.
    """
    listed, lists_error = _extend_lists(settings, plan, on_step, on_note)
    rates = plan.rates()
    try:
        after = (
            make_journalled_change(
                settings, _COMMAND, plan.steps(), lambda: apply_rates(settings, rates, on_step=on_step), on_note
            )
            if rates
            else {}
        )
        error: HeadroomError | None = plan.unknown_error()
    except RatesError as failed:
        after, error = failed.in_force, failed
    return ApplyResult(view, plan, executed=True, after=after, error=lists_error or error, listed=listed)


def _extend_lists(
    settings: Settings, plan: ApplyPlan, on_step: OnText, on_note: OnText
) -> tuple[Sequence[str], HeadroomError | None]:
    """Add the entries, and return the topics that have them, and the error of the others."""
    lists = plan.lists
    if lists is None or not lists.entries:
        return (), None
    entries = lists.entries
    try:
        listed = make_journalled_change(
            settings, _COMMAND, lists.steps(), lambda: append_lists(settings, entries, on_step=on_step), on_note
        )
        return listed, None
    except HeadroomError as error:
        return (), error
