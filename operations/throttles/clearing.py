"""Removal of throttles, as planned."""

from __future__ import annotations

from collections.abc import Callable

from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.throttles.list_entries import ROLE_OF_KEY
from headroom.cluster.throttles.rates import clear_rates
from headroom.cluster.throttles.replica_lists import clear_lists
from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.progress import OnText
from headroom.operations.throttles.clear_plan import ClearPlan, clear_steps
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError


def clear_throttles(
    settings: Settings, view: ThrottleState, plan: ClearPlan, on_step: OnText, on_note: OnText
) -> HeadroomError | None:
    """Clear everything possible, and return the first error; a failed broker does not stop the others.

    Args:
        settings: all settings.
        view: throttles in force before.
        plan: what to remove.
        on_step: gets one line per step.
        on_note: gets a sentence if the change is not in the journal.
    """
    return make_journalled_change(
        settings, "throttle clear", clear_steps(view, plan), lambda: _clear(settings, plan, on_step), on_note, bool
    )


def _clear(settings: Settings, plan: ClearPlan, on_step: OnText) -> HeadroomError | None:
    errors: list[HeadroomError | None] = []
    if plan.brokers or plan.cluster_default:
        errors.append(_error_of(lambda: clear_rates(settings, plan.brokers, plan.cluster_default, on_step=on_step)))
    if plan.topics:
        roles = {topic: [ROLE_OF_KEY[key] for key in keys] for topic, keys in plan.topic_keys.items()}
        errors.append(_error_of(lambda: clear_lists(settings, roles, on_step=on_step)))
    errors.append(plan.silent_error())
    return next((error for error in errors if error is not None), None)


def _error_of(change: Callable[[], object]) -> HeadroomError | None:
    try:
        change()
    except HeadroomError as error:
        return error
    return None
