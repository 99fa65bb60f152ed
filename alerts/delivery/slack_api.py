"""Slack's Web API as deliveries need it: failures told as such, and messages found by the events that they tell of."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from typing import Any

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from alerts.delivery.http import Secret, header_secret, lost, retry_after_s, short
from alerts.delivery.receiver import DeliveryError
from schemas.config import SlackSettings

_EVENT_TYPE = "headroom_alert"
# After these Slack may have done what it was asked all the same.
_UNSURE = ("internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org")
_CODE = re.compile(r"[a-z0-9_]+")
_PAGE = 200
_BUSY_S = 30.0


class SlackError(DeliveryError):
    """What Slack refused.

    Attributes:
        code: Slack's word for it, such as ``message_not_found``.
    """

    def __init__(self, code: str, unsent: bool) -> None:
        super().__init__(f"slack: {code}", unsent=unsent)
        self.code = code


class SlackApi:
    """Calls Slack as a bot.

    Args:
        settings: section ``[notify.slack]``.
        token: of the bot.
    """

    def __init__(self, settings: SlackSettings, token: Secret) -> None:
        self._settings = settings
        self._token = token

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Return what Slack answers to a call of a method that writes.

        Raises:
            SlackError: it refused.
            DeliveryError: it was not reached, did not answer, or wants to be left alone.
        """
        return self._call(method, json=arguments)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        client, token = self._client()
        try:
            # Never tried again in here: whether an attempt arrived is asked before the next one.
            answer: Any = client.api_call(method, **arguments).data
        except SlackApiError as error:
            raise _refused(error, token) from None
        except (OSError, HTTPException) as error:
            raise lost("slack", error) from None
        return dict(answer)

    def _client(self) -> tuple[WebClient, str]:
        token = header_secret(self._token, "notify.slack.token") or ""
        settings = self._settings
        silent = logging.getLogger(f"{__name__}.silent")
        # Its own log shows what a request held.
        silent.setLevel(logging.CRITICAL)
        timeout_s: Any = settings.timeout_s
        client = WebClient(token, base_url=settings.api_url, timeout=timeout_s, retry_handlers=[], logger=silent)
        return client, token

    def find(self, keys: Sequence[str], since_ms: int, thread_ts: str | None = None) -> dict[str, dict[str, Any]]:
        """Return by event key the messages that tell of events.

        Args:
            keys: event keys.
            since_ms: the earliest time that they may be of, epoch milliseconds.
            thread_ts: the thread to look in; None: the channel itself.

        Raises:
            DeliveryError: it could not be looked.
        """
        found: dict[str, dict[str, Any]] = {}
        for message in self._messages(since_ms, thread_ts):
            for key in told_keys(message):
                if key in keys:
                    found[key] = message
            if len(found) == len(set(keys)):
                break
        return found

    def _messages(self, since_ms: int, thread_ts: str | None) -> Iterator[dict[str, Any]]:
        method = "conversations.history" if thread_ts is None else "conversations.replies"
        where = {} if thread_ts is None else {"ts": thread_ts}
        page = {"oldest": f"{since_ms / 1000:.6f}", "limit": str(_PAGE), "include_all_metadata": "true"}
        cursor = ""
        while True:
            more = {"cursor": cursor} if cursor else {}
            # Methods that read take no JSON.
            answer = self._call(method, params={"channel": self._settings.channel, **where, **page, **more})
            yield from answer.get("messages", [])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return


def metadata(keys: Sequence[str]) -> dict[str, Any]:
    """Return what a message carries unseen: the keys of the events that it tells of."""
    return {"event_type": _EVENT_TYPE, "event_payload": {"event_keys": ",".join(keys)}}


def told_keys(message: dict[str, Any]) -> list[str]:
    """Return the keys of the events that a message tells of; none: it is not one of ours."""
    found = message.get("metadata") or {}
    if found.get("event_type") != _EVENT_TYPE:
        return []
    return str((found.get("event_payload") or {}).get("event_keys", "")).split(",")


def _refused(error: SlackApiError, token: str) -> DeliveryError:
    response: Any = error.response
    status = getattr(response, "status_code", None) or response.get("status")
    headers = {name.lower(): value for name, value in (response.headers or {}).items()} if status else {}
    if status == 429:
        wait_s = retry_after_s(str(headers.get("retry-after")))
        return DeliveryError("slack: rate limited", _BUSY_S if wait_s is None else wait_s, unsent=True)
    data = getattr(response, "data", response)
    code = str(data.get("error")) if isinstance(data, dict) else ""
    # Of what does not speak Slack's words, a proxy say, nobody knows what it has passed on.
    if not _CODE.fullmatch(code) or (status or 200) >= 500:
        return DeliveryError(f"slack: answered {status}")
    return SlackError(short(code, [token]), unsent=code not in _UNSURE)
