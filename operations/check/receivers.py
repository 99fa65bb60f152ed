"""Checks of the receivers of alerts: whether each would accept an alert. None of them is notified."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from headroom.alerts.delivery.receiver import CheckedReceiver, DeliveryError
from headroom.operations.check.result import Check, failure, ok, unknown
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line

_SECTIONS = {"log": "notify", "slack_webhook": "notify.slack"}


def receiver_checks(receivers: Sequence[CheckedReceiver]) -> list[Check]:
    """Return one check per receiver, in their order; the receivers are checked in parallel."""
    with ThreadPoolExecutor(len(receivers)) as pool:
        return list(pool.map(_check, receivers))


def _check(receiver: CheckedReceiver) -> Check:
    name = f"Receiver {receiver.name}"
    section = _SECTIONS.get(receiver.name, f"notify.{receiver.name}")
    try:
        reach = receiver.reach()
    except HeadroomError as error:
        return failure(name, f"{error.subject}: {error.rule}", error.remedy)
    except DeliveryError as error:
        return failure(name, error.answer, f"See [{section}]: until then no alert arrives there.")
    answer = one_line(reach.answer)
    if not reach.untried:
        return ok(name, answer)
    return unknown(name, f"{answer}; {reach.untried}", "Look after the first alert: headroom alerts --undelivered")
