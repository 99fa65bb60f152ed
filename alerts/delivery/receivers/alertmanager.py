"""Receiver for Alertmanager (API v2): re-sends firing alerts periodically, and sends resolutions.

Labels identify an alert in Alertmanager, so changing numbers are annotations. The severity is a label because routes
match it: when it increases, the alert of the lower severity resolves and one of the higher starts, as with two rules of
Prometheus. An alert that is not sent again resolves at its ``endsAt``.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from headroom.alerts.delivery.http import HttpPoster, Secret, header_secret, json_body
from headroom.alerts.delivery.message_fields import Links, commands, figures, reason_text
from headroom.alerts.delivery.receiver import DeliveryError, Reach, Receipt
from headroom.alerts.delivery.receivers.at_once import in_parallel
from headroom.alerts.stored_event import evidence_of, with_escalation
from headroom.schemas.alerts import AlertEvent, AlertState
from headroom.schemas.config import AlertmanagerSettings

log = logging.getLogger(__name__)

# Alertmanager resolves an alert that was not re-sent for this many intervals.
_INTERVALS_UNTIL_END = 4
# An instance that did not answer is retried after this time.
_RETRY_S = 5.0
_PATH = "/api/v2/alerts"
# Last second of the year 9999, the latest that datetime can represent.
_LAST_MS = 253_402_300_799_000

PostedAlert = tuple[AlertEvent, str]


class AlertmanagerReceiver:
    """Sends alerts to every instance of a highly available Alertmanager.

    Args:
        settings: section ``[notify.alertmanager]``.
        password: password of basic authentication.
        links: links in each alert.
        clock_ms: returns the current time, epoch milliseconds.
    """

    name = "alertmanager"

    def __init__(
        self, settings: AlertmanagerSettings, password: Secret, links: Links, clock_ms: Callable[[], int]
    ) -> None:
        self._settings = settings
        self._urls = settings.instances()
        self._poster = HttpPoster(settings.timeout_s, settings.ssl_cafile, "notify.alertmanager.ssl_cafile")
        self._password = password
        self._links = links
        self._clock_ms = clock_ms
        self._firing: dict[str, PostedAlert] = {}
        # By instance, the alerts whose last event it has not received.
        self._missed: dict[str, dict[str, PostedAlert]] = {url: {} for url in self._urls}

    @property
    def resend_in_s(self) -> float:
        """Return the re-send interval in seconds, shorter while an instance has missed an event."""
        return min(_RETRY_S, self._settings.resend_s) if any(self._missed.values()) else self._settings.resend_s

    def restore(self, alerts: Sequence[PostedAlert]) -> None:
        """Restore firing alerts after a restart and re-send them soon, because the restart may have taken long."""
        self._firing = {event.alert_id: (event, before) for event, before in alerts}
        self._missed = {url: dict(self._firing) for url in self._urls}

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        """Post the event to every instance; posting it twice changes nothing.

        Raises:
            DeliveryError: no instance accepted it.
        """
        reference = _reference(event, before)
        alert = event, reference
        errors = self._post({url: [alert] for url in self._urls})
        if len(errors) == len(self._urls):
            waits = [error.retry_after_s for error in errors.values() if error.retry_after_s is not None]
            answer = "; ".join(error.answer for error in errors.values())
            raise DeliveryError(answer, min(waits, default=None), all(error.unsent for error in errors.values()))
        self._update_firing(alert, errors)
        took = f"{len(self._urls) - len(errors)} of {len(self._urls)} took it"
        return Receipt("; ".join([took, *(error.answer for error in errors.values())]), reference)

    def _update_firing(self, alert: PostedAlert, errors: dict[str, DeliveryError]) -> None:
        alert_id = alert[0].alert_id
        self._firing.pop(alert_id, None)
        if alert[0].state == AlertState.FIRING.value:
            self._firing[alert_id] = alert
        for url, missed in self._missed.items():
            missed.pop(alert_id, None)
            if url in errors:
                missed[alert_id] = alert
                log.warning(
                    "an Alertmanager instance has not received alert %s and will be retried: %s",
                    alert_id,
                    errors[url].answer,
                )

    def forget(self, alert_id: str) -> None:
        """Stop re-sending an alert, so that it resolves in Alertmanager by timeout."""
        self._firing.pop(alert_id, None)

    def resend(self) -> None:
        """Post firing alerts to every instance, with the resolutions that it missed.

        Raises:
            DeliveryError: an instance did not accept them.
        """
        posts = {url: list({**missed, **self._firing}.values()) for url, missed in self._missed.items()}
        errors = self._post({url: alerts for url, alerts in posts.items() if alerts})
        for url, missed in self._missed.items():
            if url not in errors:
                missed.clear()
            else:
                missed.update(self._firing)
                # Alerts that have resolved by timeout need no resolution.
                old_ms = self._clock_ms() - self._alive_ms()
                for alert_id in [i for i, (e, _) in missed.items() if i not in self._firing and e.event_ms < old_ms]:
                    del missed[alert_id]
        _require_none(errors)

    def reach(self) -> Reach:
        """Return that every instance takes posts; it gets an empty list of alerts.

        Raises:
            DeliveryError: an instance does not.
            HeadroomError: the file of the password cannot be read.
        """
        errors = self._post({url: [] for url in self._urls})
        _require_none(errors)
        return Reach(f"{len(self._urls)} of {len(self._urls)} take alerts")

    def _alive_ms(self) -> int:
        return round(_INTERVALS_UNTIL_END * self._settings.resend_s * 1000)

    def _post(self, posts: dict[str, list[PostedAlert]]) -> dict[str, DeliveryError]:
        """Post to all instances in parallel, so that one that hangs does not delay the others."""
        headers, password = self._authorization()
        bodies = {
            url: json_body([result for alert in alerts for result in self._alerts_json(*alert)])
            for url, alerts in posts.items()
        }

        def post(url: str) -> DeliveryError | None:
            try:
                self._poster.post(f"{url}{_PATH}", bodies[url], headers, [password])
            except DeliveryError as error:
                return error
            except Exception as error:
                return DeliveryError(type(error).__name__)
            return None

        outcomes = in_parallel({url: partial(post, url) for url in posts})
        return {url: error for url, error in outcomes.items() if error is not None}

    def _authorization(self) -> tuple[dict[str, str], str | None]:
        if not self._settings.username:
            return {}, None
        password = header_secret(self._password, "notify.alertmanager.password")
        both = f"{self._settings.username}:{password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(both).decode()}"}, password

    def _alerts_json(self, event: AlertEvent, reference: str) -> list[dict[str, Any]]:
        """Return the alert, and the resolution of its previous severity or escalation, if it had one."""
        known, now_ms = json.loads(reference), self._clock_ms()
        # After the clock was set back, stored times may be in the future, and the alert would not resolve until then.
        starts_ms = min(int(known["starts_at_ms"]), now_ms)
        resolved = event.state == AlertState.RESOLVED.value
        ends_ms = max(starts_ms, min(event.tick_ms, now_ms)) if resolved else now_ms + self._alive_ms()
        result = [self._alert_json(event, starts_ms, ends_ms)]
        if known.get("was"):
            lower = replace(with_escalation(event, known.get("was_escalation", 0)), severity=known["was"])
            from_ms = min(int(known["was_from_ms"]), now_ms)
            result.append(self._alert_json(lower, from_ms, max(from_ms, starts_ms)))
        return result

    def _alert_json(self, event: AlertEvent, starts_ms: int, ends_ms: int) -> dict[str, Any]:
        links = self._links.urls_of(event)
        return {
            "labels": labels(event),
            "annotations": alert_annotations(event, links),
            "startsAt": _time(starts_ms),
            "endsAt": _time(ends_ms),
            **({"generatorURL": links["dashboard"]} if "dashboard" in links else {}),
        }


def _require_none(errors: dict[str, DeliveryError]) -> None:
    if errors:
        raise DeliveryError("; ".join(error.answer for error in errors.values()))


def _reference(event: AlertEvent, before: str) -> str:
    """Return the reference: start of the current severity and escalation, and the previous ones if they changed."""
    known = json.loads(before) if before else {}
    now = {"starts_at_ms": event.tick_ms, "severity": event.severity, "escalation": _escalation(event)}
    if not known:
        return json.dumps(now)
    severity, escalation = known.get("severity", event.severity), known.get("escalation", 0)
    if (severity, escalation) == (event.severity, _escalation(event)):
        return before
    was = {"was": severity, "was_escalation": escalation, "was_from_ms": known["starts_at_ms"]}
    return json.dumps({**now, **was})


def _escalation(event: AlertEvent) -> int:
    """Return the number of escalations of an alert."""
    return evidence_of(event).escalation or 0


def labels(event: AlertEvent) -> dict[str, str]:
    """Return the labels that identify an alert; an escalation changes them, so that Alertmanager notifies again."""
    escalation = _escalation(event)
    return {
        "alertname": event.kind,
        "cluster": event.cluster,
        "subject": event.subject,
        "severity": event.severity,
        **({"escalation": str(escalation)} if escalation else {}),
    }


def alert_annotations(event: AlertEvent, links: dict[str, str]) -> dict[str, str]:
    """Return the annotations of an alert."""
    result = {
        "summary": event.summary,
        "alert_id": event.alert_id,
        "recommendation": reason_text(event),
        "command": next(iter(commands(event)), ""),
        **{name.lower().replace(" ", "_").replace("-", "_"): text for name, text in figures(event).items()},
        **{f"{name}_url": url for name, url in links.items()},
    }
    return {name: text for name, text in result.items() if text}


def _time(epoch_ms: int) -> str:
    at = datetime.fromtimestamp(min(max(epoch_ms, 0), _LAST_MS) / 1000, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
