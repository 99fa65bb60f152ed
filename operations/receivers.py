"""Construction of the alert receivers from the settings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from headroom.alerts.delivery.http import Secret
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import CheckedReceiver
from headroom.alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from headroom.alerts.delivery.receivers.log import LogReceiver
from headroom.alerts.delivery.receivers.slack import SlackReceiver
from headroom.alerts.delivery.receivers.slack_api import SlackApi
from headroom.alerts.delivery.receivers.slack_webhook import SlackWebhookReceiver
from headroom.alerts.delivery.receivers.webhook import WebhookReceiver
from headroom.cluster.secrets import secret
from headroom.schemas.config import NotifySettings
from headroom.streaming.clock import now_ms


def build_receivers(notify: NotifySettings, clock_ms: Callable[[], int] | None = None) -> list[CheckedReceiver]:
    """Return the configured alert receivers; their secrets are read at each use.

    Args:
        notify: section ``[notify]``.
        clock_ms: returns the current time in epoch milliseconds; this machine's clock if None.

    Raises:
        HeadroomError: a file of certificate authorities cannot be used.
    """
    clock_ms = clock_ms or now_ms
    slack, alertmanager, webhook, links = notify.slack, notify.alertmanager, notify.webhook, Links.of(notify)
    makers: dict[str, Callable[[], CheckedReceiver]] = {
        "log": lambda: LogReceiver(logging.getLogger("headroom.alerts")),
        "slack": lambda: SlackReceiver(
            SlackApi(slack, _secret(slack, "slack", "token")), slack.channel, notify.digest_after, links, slack.mention
        ),
        "slack_webhook": lambda: SlackWebhookReceiver(slack, _secret(slack, "slack", "webhook_url"), links),
        "alertmanager": lambda: AlertmanagerReceiver(
            alertmanager, _secret(alertmanager, "alertmanager", "password"), links, clock_ms
        ),
        "webhook": lambda: WebhookReceiver(webhook, _secret(webhook, "webhook", "secret"), links, clock_ms),
    }
    return [makers[name]() for name in notify.receivers()]


def _secret(settings: object, section: str, name: str) -> Secret:
    file = f"{name}_file"
    return partial(secret, getattr(settings, name), getattr(settings, file), f"notify.{section}.{file}")
