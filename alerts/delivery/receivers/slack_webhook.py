"""Receiver for Slack with an incoming webhook.

Every event is a new message, because a webhook can neither edit, reply to nor find messages. After a crash between
sending and recording, the message is sent again.
"""

from __future__ import annotations

from headroom.alerts.delivery.http import HttpPoster, Secret, json_body
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import Reach, Receipt
from headroom.alerts.delivery.receivers.slack_blocks import alert_blocks, plain_text
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import SlackSettings
from headroom.schemas.errors import HeadroomError


class SlackWebhookReceiver:
    """Posts each event to a webhook.

    Args:
        settings: section ``[notify.slack]``.
        url: URL of the webhook; a secret.
        links: links in each message.
    """

    name = "slack_webhook"

    def __init__(self, settings: SlackSettings, url: Secret, links: Links) -> None:
        self._poster = HttpPoster(settings.timeout_s)
        self._mention = settings.mention
        self._url = url
        self._links = links

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        """Post the event.

        Raises:
            DeliveryError: Slack did not accept it.
            HeadroomError: the setting has no URL.
        """
        url = self._checked_url()
        blocks = alert_blocks(event, self._links, self._mention(event.severity))
        body = json_body({"text": plain_text(event), "blocks": blocks})
        return Receipt(self._poster.post(url, body, {}, [url]))

    def reach(self) -> Reach:
        """Return whether Slack answers; nothing is posted.

        Raises:
            DeliveryError: it does not.
            HeadroomError: the setting has no URL.
        """
        return Reach(self._poster.reach(self._checked_url()), "whether it takes events shows only the first one")

    def _checked_url(self) -> str:
        url = self._url()
        if url is None or not url.startswith(("https://", "http://")):
            raise HeadroomError("notify.slack.webhook_url", "must be a URL", "See the file that it is in.")
        return url
