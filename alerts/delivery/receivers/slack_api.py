"""Client of Slack's Web API: calls with errors as exceptions, and search of messages by event key."""

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
# Errors after which Slack may still have executed the request.
_UNSURE = ("internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org")
_CODE = re.compile(r"[a-z0-9_]{1,80}")
_FORM = "application/x-www-form-urlencoded"
_PAGE = 200
# Limit against a history with endless pages.
_PAGES_MOST = 100
# A page of the longest messages has a few megabytes.
_MOST_BYTES = 16_000_000
_BUSY_S = 30.0


class SlackError(DeliveryError):
    """Error returned by Slack.

    Attributes:
        code: error code, such as ``message_not_found``.
    """

    def __init__(self, code: str, unsent: bool) -> None:
        super().__init__(f"slack: {code}", unsent=unsent)
        self.code = code


class SlackApi:
    """Calls Slack as a bot.

    Args:
        settings: section ``[notify.slack]``.
        token: token of the bot.
    """

    def __init__(self, settings: SlackSettings, token: Secret) -> None:
        self._settings = settings
        self._token = token
        self._poster = HttpPoster(settings.timeout_s)

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call a writing method and return the answer.

        Raises:
            SlackError: Slack returned an error.
            DeliveryError: Slack was not reached, did not answer, or limits the rate.
        """
        return self._call(method, json_body(arguments))

    def _call(self, method: str, body: bytes, **headers: str) -> dict[str, Any]:
        # No retry here: before the next attempt the receiver checks whether this one arrived.
        token = header_secret(self._token, "notify.slack.token") or ""
        url = f"{self._settings.api_url.rstrip('/')}/{method}"
        all_headers = {"Authorization": f"Bearer {token}", **headers}
        answer = self._poster.answer("slack", url, body, all_headers, _MOST_BYTES)
        content = _content(answer)
        if answer.status != 200 or content.get("ok") is not True:
            raise _refused(answer, content)
        return content

    def find(self, keys: Sequence[str], since_ms: int, thread_ts: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the messages of events, by event key.

        Args:
            keys: event keys.
            since_ms: earliest time of the messages, epoch milliseconds.
            thread_ts: thread to search; None for the channel itself.

        Raises:
            DeliveryError: the messages could not be read.
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
            # Reading methods accept no JSON.
            form = urlencode({"channel": self._settings.channel, **where, **page, **more}).encode()
            answer = self._call(method, form, **{"Content-Type": _FORM})
            yield from (message for message in _list(answer.get("messages")) if isinstance(message, dict))
            cursor = str(_object(answer.get("response_metadata")).get("next_cursor") or "")
            if not cursor:
                return


def metadata(keys: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a message: the keys of its events."""
    return {"event_type": _EVENT_TYPE, "event_payload": {"event_keys": ",".join(keys)}}


def event_keys_of(message: Mapping[str, Any]) -> list[str]:
    """Return the event keys in a message's metadata; empty if Headroom did not send it."""
    found = _object(message.get("metadata"))
    if found.get("event_type") != _EVENT_TYPE:
        return []
    return str(_object(found.get("event_payload")).get("event_keys", "")).split(",")


def _content(answer: HttpAnswer) -> dict[str, Any]:
    """Return the JSON object of an answer; empty if there is none."""
    try:
        return _object(json.loads(answer.body)) if answer.whole else {}
    # RecursionError: the answer is nested too deeply for Python.
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
    # If the answer is not from Slack but from a proxy, for example, the request may have been passed on.
    if not _CODE.fullmatch(code) or answer.status >= 500:
        cut = "" if answer.whole else ", and its answer was cut: it came too slowly, or was too long"
        return DeliveryError(f"slack: answered {answer.status}{cut}")
    return SlackError(code, unsent=code not in _UNSURE)
