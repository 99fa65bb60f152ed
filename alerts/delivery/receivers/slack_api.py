"""Slack's Web API as deliveries need it: failures told as such, and messages found by the events that they tell of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from alerts.delivery.exchange import HttpAnswer
from alerts.delivery.http import HttpPoster, Secret, header_secret, json_body, retry_after_s
from alerts.delivery.receiver import DeliveryError
from schemas.config import SlackSettings

_EVENT_TYPE = "headroom_alert"
# After these Slack may have done what it was asked all the same.
_UNSURE = ("internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org")
_CODE = re.compile(r"[a-z0-9_]{1,80}")
_FORM = "application/x-www-form-urlencoded"
_PAGE = 200
# A history that never ends is none.
_PAGES_MOST = 100
# A page of the longest messages has a few megabytes.
_MOST_BYTES = 16_000_000
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
        self._poster = HttpPoster(settings.timeout_s)

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Return what Slack answers to a call of a method that writes.

        Raises:
            SlackError: it refused.
            DeliveryError: it was not reached, did not answer, or wants to be left alone.
        """
        return self._call(method, json_body(arguments))

    def _call(self, method: str, body: bytes, **headers: str) -> dict[str, Any]:
        # Never tried again in here: whether an attempt arrived is asked before the next one.
        token = header_secret(self._token, "notify.slack.token") or ""
        url = f"{self._settings.api_url.rstrip('/')}/{method}"
        all_headers = {"Authorization": f"Bearer {token}", **headers}
        answer = self._poster.answer("slack", url, body, all_headers, _MOST_BYTES)
        content = _content(answer)
        if answer.status != 200 or content.get("ok") is not True:
            raise _refused(answer, content)
        return content

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
            for key in event_keys_of(message):
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
        for _ in range(_PAGES_MOST):
            more = {"cursor": cursor} if cursor else {}
            # Methods that read take no JSON.
            form = urlencode({"channel": self._settings.channel, **where, **page, **more}).encode()
            answer = self._call(method, form, **{"Content-Type": _FORM})
            yield from (message for message in _list(answer.get("messages")) if isinstance(message, dict))
            cursor = str(_object(answer.get("response_metadata")).get("next_cursor") or "")
            if not cursor:
                return


def metadata(keys: Sequence[str]) -> dict[str, Any]:
    """Return what a message carries unseen: the keys of the events that it tells of."""
    return {"event_type": _EVENT_TYPE, "event_payload": {"event_keys": ",".join(keys)}}


def event_keys_of(message: Mapping[str, Any]) -> list[str]:
    """Return the keys of the events that a message tells of; none: it is not one of ours."""
    found = _object(message.get("metadata"))
    if found.get("event_type") != _EVENT_TYPE:
        return []
    return str(_object(found.get("event_payload")).get("event_keys", "")).split(",")


def _content(answer: HttpAnswer) -> dict[str, Any]:
    """Return the object that an answer holds; an empty one if it holds none."""
    try:
        return _object(json.loads(answer.body)) if answer.whole else {}
    # The second of an answer that nests more deeply than Python reads.
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _refused(answer: HttpAnswer, content: dict[str, Any]) -> DeliveryError:
    if answer.status == 429:
        wait_s = retry_after_s(answer.retry_after)
        return DeliveryError("slack: rate limited", _BUSY_S if wait_s is None else wait_s, unsent=True)
    code = str(content.get("error", ""))
    # Of what does not speak Slack's words, a proxy say, nobody knows what it has passed on.
    if not _CODE.fullmatch(code) or answer.status >= 500:
        cut = "" if answer.whole else ", and its answer was cut: it came too slowly, or was too long"
        return DeliveryError(f"slack: answered {answer.status}{cut}")
    return SlackError(code, unsent=code not in _UNSURE)
