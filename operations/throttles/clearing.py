"""Removal of throttles, as planned."""

from __future__ import annotations

from collections.abc import Callable

from cluster.throttles.rates import clear_lists, clear_rates
from operations.progress import OnText
from operations.reassignments.journalled import journalled
from operations.throttles.clear_plan import ClearPlan, clear_steps
from operations.throttles.throttle_view import ThrottleView
from schemas.config import Settings
from schemas.errors import HeadroomError


def clear_throttles(
    settings: Settings, view: ThrottleView, plan: ClearPlan, on_step: OnText, on_note: OnText
) -> HeadroomError | None:
    """Clear everything possible, and return the first error; a failed broker does not stop the others.

    Args:
        settings: all settings.
        view: throttles in force before.
        plan: what to remove.
        on_step: gets one line per step.
        on_note: gets a sentence if the change is not in the journal.
    """
    return journalled(
        settings, "throttle clear", clear_steps(view, plan), lambda: _clear(settings, plan, on_step), on_note, bool
    )


def _clear(settings: Settings, plan: ClearPlan, on_step: OnText) -> HeadroomError | None:
    errors: list[HeadroomError | None] = []
    if plan.brokers or plan.cluster_default:
        errors.append(_error_of(lambda: clear_rates(settings, plan.brokers, plan.cluster_default, on_step=on_step)))
    if plan.topics:
        errors.append(_error_of(lambda: clear_lists(settings, plan.topics, on_step=on_step, keys=plan.topic_keys)))
    errors.append(plan.silent_error())
    return next((error for error in errors if error is not None), None)


def _error_of(change: Callable[[], object]) -> HeadroomError | None:
    try:
        change()
    except HeadroomError as error:
        return error
    return None
