"""Receiver for Slack with a bot: one message per alert, edited when the alert changes, with a thread of the changes.

Slack does not notify of an edit, and of a reply only those who follow the thread. So the reply to a rise or an
escalation is shown in the channel too, with the mentions of a new alert of that severity.

After a crash between sending and recording, it is unknown whether a message arrived. Every message contains the keys of
its events as metadata, so that the next attempt finds it instead of sending it twice.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from headroom.alerts.delivery.delivery_log import event_key
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import DeliveryError, Reach, Receipt
from headroom.alerts.delivery.receivers.slack_api import SlackApi, SlackError, event_keys_of, metadata
from headroom.alerts.delivery.receivers.slack_blocks import (
    MESSAGE_LEAST,
    MESSAGE_MOST,
    Block,
    alert_blocks,
    change_text,
    digest_blocks,
    plain_text,
)
from headroom.alerts.stored_event import evidence_of
from headroom.schemas.alerts import AlertEvent, AlertState, Severity

log = logging.getLogger(__name__)

# Largest difference between Slack's clock and ours.
_CLOCKS_MS = 3_600_000
# Errors for a message that can no longer be edited; replies in its thread still work.
_NO_EDIT = ("edit_window_closed", "cant_update_message")
_GONE = ("message_not_found", "thread_not_found")
# Errors of a bot without permission to read the channel: a duplicate is better than a missing message.
_CANNOT_READ = ("missing_scope", "not_in_channel", "no_permission", "not_allowed_token_type")

# Errors for a message with too much text; Slack documents no limit of all blocks together.
_TOO_LONG = ("msg_blocks_too_long", "msg_too_long")

# Form of the ids of channels and messages.
_CHANNEL = re.compile(r"[A-Z0-9]{1,40}")
_TS = re.compile(r"[0-9]{1,20}\.[0-9]{1,20}")


@dataclass(frozen=True)
class MessageRef:
    """Reference to an alert's message.

    Attributes:
        channel: id of the channel.
        ts: timestamp that identifies the message in the channel.
        shared: whether the message is a digest, which is not edited.
    """

    channel: str
    ts: str
    shared: bool = False

    @classmethod
    def of(cls, text: str) -> MessageRef:
        """Return a stored reference; what a newer version has added to it is ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in known})


class SlackReceiver:
    """Posts alerts to a channel.

    Args:
        api: client of the Slack API.
        channel: id of the channel.
        digest_after: number of alerts that may fire together without a digest.
        links: links in each message.
        mention: returns the mentions in alerts of a severity; empty for none.
    """

    name = "slack"

    def __init__(
        self,
        api: SlackApi,
        channel: str,
        digest_after: int,
        links: Links,
        mention: Callable[[str], str] = lambda severity: "",
    ) -> None:
        self._api = api
        self._channel = channel
        self._digest_after = digest_after
        self._links = links
        self._mention = mention
        # Of each firing alert, the event that was sent last by this process.
        self._sent: dict[str, AlertEvent] = {}

    @property
    def digest_after(self) -> int:
        """Return the number of alerts that may fire together without a digest."""
        return self._digest_after

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        """Post an alert's message, or edit it and reply in its thread.

        Raises:
            DeliveryError: Slack did not accept it.
        """
        receipt = self._deliver(event, before, may_have_arrived)
        self._note_sent([event])
        return receipt

    def _deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        if not before:
            return self._post_new(event, may_have_arrived)
        try:
            return self._update(event, MessageRef.of(before), may_have_arrived)
        except SlackError as error:
            if error.code not in _GONE:
                raise
            # The message was deleted.
            return self._post_new(event, may_have_arrived)

    def deliver_together(self, events: Sequence[AlertEvent], may_have_arrived: bool) -> list[Receipt]:
        """Post one digest for many alerts, without those in a digest that arrived earlier.

        Raises:
            DeliveryError: Slack did not accept it.
        """
        receipts = self._find_arrived(events) if may_have_arrived else {}
        missing = [event for event in events if event_key(event) not in receipts]
        if missing:
            text = f"{len(missing)} alerts fire at once"
            # The mentions of all severities, each once.
            present = {event.severity for event in missing}
            mentions = [self._mention(severity.value) for severity in Severity if severity.value in present]
            mention = " ".join(dict.fromkeys(filter(None, mentions)))
            message = self._post(
                missing, text, lambda most: digest_blocks(missing, self._links, mention, most), shared=True
            )
            receipts.update({event_key(event): _receipt("posted in a digest", message) for event in missing})
        self._note_sent(events)
        return [receipts[event_key(event)] for event in events]

    def reach(self) -> Reach:
        """Return the bot and its workspace, and whether it reads the channel; nothing is posted.

        Raises:
            DeliveryError: Slack does not accept the token, or has no such channel for the bot.
            HeadroomError: the token cannot be read.
        """
        bot = self._api.read("auth.test")
        answer = f"bot {bot.get('user')} of {bot.get('team')}"
        try:
            self._api.read("conversations.history", channel=self._channel, limit="1")
        except SlackError as error:
            if error.code not in _CANNOT_READ:
                raise
            return Reach(answer, f"it cannot read channel {self._channel} ({error.code}), and may not write there")
        return Reach(f"{answer}, in channel {self._channel}")

    def _note_sent(self, events: Sequence[AlertEvent]) -> None:
        for event in events:
            if event.state == AlertState.RESOLVED.value:
                self._sent.pop(event.alert_id, None)
            else:
                self._sent[event.alert_id] = event

    def _must_be_seen(self, event: AlertEvent) -> bool:
        """Return whether people in the channel must notice a change: a rise of the severity, or an escalation.

        After a restart the event before is unknown: better a critical alert is shown twice.
        """
        if event.state == AlertState.RESOLVED.value:
            return False
        before, evidence = self._sent.get(event.alert_id), evidence_of(event)
        if before is None:
            return Severity.of(event.severity) is Severity.CRITICAL or evidence.escalated_tick_ms == event.tick_ms
        has_risen = Severity.of(event.severity).rank < Severity.of(before.severity).rank
        # A silence may have dropped the event of the escalation itself.
        return has_risen or (evidence.escalation or 0) > (evidence_of(before).escalation or 0)

    def _post_new(self, event: AlertEvent, may_have_arrived: bool) -> Receipt:
        arrived = self._find_arrived([event]) if may_have_arrived else {}
        if arrived:
            return arrived[event_key(event)]
        return _receipt("posted", self._post([event], plain_text(event), lambda most: self._blocks(event, most)))

    def _blocks(self, event: AlertEvent, most: int) -> list[Block]:
        return alert_blocks(event, self._links, self._mention(event.severity), most)

    def _update(self, event: AlertEvent, message: MessageRef, may_have_arrived: bool) -> Receipt:
        if not message.shared:
            self._edit(event, message)
        if may_have_arrived and self._has_reply(event, message):
            return _receipt("replied before", message)
        must_be_seen = self._must_be_seen(event)
        self._api.call(
            "chat.postMessage",
            channel=message.channel,
            thread_ts=message.ts,
            text=change_text(event, self._mention(event.severity) if must_be_seen else ""),
            reply_broadcast=must_be_seen,
            metadata=metadata([event_key(event)]),
            unfurl_links=False,
        )
        return _receipt("edited, replied", message)

    def _edit(self, event: AlertEvent, message: MessageRef) -> None:
        arguments = {"channel": message.channel, "ts": message.ts, "text": plain_text(event)}
        try:
            self._call("chat.update", lambda most: self._blocks(event, most), **arguments)
        except SlackError as error:
            if error.code not in _NO_EDIT:
                raise

    def _call(self, method: str, blocks: Callable[[int], list[Block]], **arguments: Any) -> dict[str, Any]:
        """Call a method with blocks, and with shorter ones if they are refused as too long.

        Args:
            method: method that writes a message.
            blocks: returns blocks with at most a number of characters.
            arguments: other arguments.
        """
        most = MESSAGE_MOST
        while True:
            try:
                return self._api.call(method, blocks=blocks(most), **arguments)
            except SlackError as error:
                if error.code not in _TOO_LONG or most <= MESSAGE_LEAST:
                    raise
            most //= 2

    def _post(
        self, events: Sequence[AlertEvent], text: str, blocks: Callable[[int], list[Block]], shared: bool = False
    ) -> MessageRef:
        answer = self._call(
            "chat.postMessage",
            blocks,
            channel=self._channel,
            text=text,
            metadata=metadata([event_key(event) for event in events]),
            unfurl_links=False,
            unfurl_media=False,
        )
        return MessageRef(_slack_id(_CHANNEL, answer, "channel", self._channel), _slack_id(_TS, answer, "ts"), shared)

    def _find_arrived(self, events: Sequence[AlertEvent]) -> dict[str, Receipt]:
        """Return by event key the receipts of messages that arrived in an earlier attempt."""
        since_ms = min(event.event_ms for event in events) - _CLOCKS_MS
        try:
            messages = self._api.find([event_key(event) for event in events], since_ms)
        except SlackError as error:
            self._accept_missing_scope(error)
            return {}
        return {
            key: _receipt(
                "was there already",
                MessageRef(self._channel, _slack_id(_TS, message, "ts"), len(event_keys_of(message)) > 1),
            )
            for key, message in messages.items()
        }

    def _has_reply(self, event: AlertEvent, message: MessageRef) -> bool:
        try:
            return bool(self._api.find([event_key(event)], event.event_ms - _CLOCKS_MS, message.ts))
        except SlackError as error:
            self._accept_missing_scope(error)
            return False

    def _accept_missing_scope(self, error: SlackError) -> None:
        if error.code not in _CANNOT_READ:
            raise error
        log.warning("slack: cannot check whether a message arrived (%s), so it may be sent twice", error.code)


def _slack_id(form: re.Pattern[str], answer: Mapping[str, object], name: str, default: str = "") -> str:
    """Return the id of a channel or a message from an answer, for use in later requests.

    Raises:
        DeliveryError: the answer has no id of the expected form.
    """
    value = answer.get(name, default)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise DeliveryError(f"slack: answered without a {name} that names anything")
    return value


def _receipt(answer: str, message: MessageRef) -> Receipt:
    return Receipt(answer, json.dumps(asdict(message)))
