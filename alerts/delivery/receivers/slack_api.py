"""Slack's Web API, by Slack's own client: calls with errors as exceptions, and search of messages by event key."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    TraceConfig,
    TraceRequestEndParams,
    TraceRequestRedirectParams,
)
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from headroom.alerts.delivery.exchange import cause_of, new_session, proxy_of, read_body
from headroom.alerts.delivery.http import Secret, connection_error, header_secret, retry_after_s, tls_context
from headroom.alerts.delivery.receiver import DeliveryError
from headroom.schemas.config import SlackSettings

_EVENT_TYPE = "headroom_alert"
# Errors after which Slack may still have executed the request.
_UNSURE = ("internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org")
_CODE = re.compile(r"[a-z0-9_]{1,80}")
_PAGE = 200
# Limit against a history with endless pages.
_PAGES_MOST = 100
# A page of the longest messages has a few megabytes.
_MOST_BYTES = 16_000_000
_BUSY_S = 30.0
# The client logs every request and answer.
_SDK_LOG = logging.getLogger(f"{__name__}.sdk")
_SDK_LOG.setLevel(logging.WARNING)


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
        self._url = f"{settings.api_url.rstrip('/')}/"
        self._tls = tls_context()

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call a writing method and return the answer.

        Raises:
            SlackError: Slack returned an error.
            DeliveryError: Slack was not reached, did not answer, or limits the rate.
        """
        return self._call(method, json=arguments)

    def read(self, method: str, **arguments: str) -> dict[str, Any]:
        """Call a reading method, which accepts no JSON, and return the answer.

        Raises:
            SlackError: Slack returned an error.
            DeliveryError: Slack was not reached, did not answer, or limits the rate.
        """
        return self._call(method, data=arguments)

    def _call(self, method: str, **body: Any) -> dict[str, Any]:
        token = header_secret(self._token, "notify.slack.token") or ""
        return asyncio.run(self._answer(token, method, body))

    async def _answer(self, token: str, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        head = _Head()
        options = {"response_class": _BoundedResponse, "trace_configs": [head.trace()]}
        async with new_session(self._tls, self._settings.timeout_s, **options) as session:
            # No retry here: before the next attempt the receiver checks whether this one arrived.
            client = AsyncWebClient(token, self._url, session=session, retry_handlers=[], logger=_SDK_LOG)
            # Of itself it does not know NO_PROXY.
            client.proxy = proxy_of(self._url)
            content: Any = None
            try:
                content = (await client.api_call(method, **body)).data
            except SlackApiError as error:
                # Its response is not Slack's if the body is not valid JSON.
                content = getattr(error.response, "data", None)
            except Exception as error:
                if head.status is None:
                    raise connection_error("slack", cause_of(error)) from None
                head.is_cut = isinstance(error, ClientPayloadError)
        if head.status != HTTPStatus.OK or _object(content).get("ok") is not True:
            raise _refusal(head, _object(content))
        return _object(content)

    def find(self, keys: Sequence[str], since_ms: int, thread_ts: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the messages of events, by event key.

        Args:
            keys: event keys.
            since_ms: earliest time of the messages, epoch milliseconds.
            thread_ts: thread to search; None for the channel itself.

        Raises:
            DeliveryError: the messages could not be read.
        """
        messages: dict[str, dict[str, Any]] = {}
        for message in self._messages(since_ms, thread_ts):
            for key in event_keys_of(message):
                if key in keys:
                    messages[key] = message
            if len(messages) == len(set(keys)):
                break
        return messages

    def _messages(self, since_ms: int, thread_ts: str | None) -> Iterator[dict[str, Any]]:
        method = "conversations.history" if thread_ts is None else "conversations.replies"
        where = {} if thread_ts is None else {"ts": thread_ts}
        page = {"oldest": f"{since_ms / 1000:.6f}", "limit": str(_PAGE), "include_all_metadata": "true"}
        cursor = ""
        for _ in range(_PAGES_MOST):
            more = {"cursor": cursor} if cursor else {}
            answer = self.read(method, channel=self._settings.channel, **where, **page, **more)
            messages = answer.get("messages")
            if isinstance(messages, list):
                yield from (message for message in messages if isinstance(message, dict))
            cursor = str(_object(answer.get("response_metadata")).get("next_cursor") or "")
            if not cursor:
                return


def metadata(keys: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a message: the keys of its events."""
    return {"event_type": _EVENT_TYPE, "event_payload": {"event_keys": ",".join(keys)}}


def event_keys_of(message: Mapping[str, Any]) -> list[str]:
    """Return the event keys in a message's metadata; empty if Headroom did not send it."""
    message_metadata = _object(message.get("metadata"))
    if message_metadata.get("event_type") != _EVENT_TYPE:
        return []
    return str(_object(message_metadata.get("event_payload")).get("event_keys", "")).split(",")


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


class _BoundedResponse(ClientResponse):
    """A response whose body is not read beyond a limit."""

    async def read(self) -> bytes:
        self._body, is_whole = await read_body(self, _MOST_BYTES)
        if not is_whole:
            raise ClientPayloadError("the body is cut")
        return self._body


@dataclass
class _Head:
    """What is known of a response even if its body is not.

    Attributes:
        status: HTTP status; None before it has arrived.
        retry_after: header ``Retry-After``; None if there is none.
        is_cut: whether the body came too slowly, or was too long.
    """

    status: int | None = None
    retry_after: str | None = None
    is_cut: bool = False

    def trace(self) -> TraceConfig:
        """Return what notes the head of a response, and refuses redirects: the token is for one host."""
        trace = TraceConfig()
        trace.on_request_end.append(self._note)
        trace.on_request_redirect.append(self._refuse)
        return trace

    async def _note(self, _: Any, __: Any, end: TraceRequestEndParams) -> None:
        self.status, self.retry_after = end.response.status, end.response.headers.get("Retry-After")

    async def _refuse(self, _: Any, __: Any, redirect: TraceRequestRedirectParams) -> None:
        self.status = redirect.response.status
        raise ClientError("a redirect")


def _refusal(head: _Head, content: dict[str, Any]) -> DeliveryError:
    if head.status == HTTPStatus.TOO_MANY_REQUESTS:
        wait_s = retry_after_s(head.retry_after)
        return DeliveryError("slack: rate limited", _BUSY_S if wait_s is None else wait_s, unsent=True)
    code = str(content.get("error", ""))
    # If the answer is not from Slack but from a proxy, for example, the request may have been passed on.
    if not _CODE.fullmatch(code) or (head.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        cut = ", and its answer was cut: it came too slowly, or was too long" if head.is_cut else ""
        return DeliveryError(f"slack: answered {head.status}{cut}")
    return SlackError(code, unsent=code not in _UNSURE)
