"""Receivers that drip, flood, echo or redirect: an exchange ends in time, stays small, and shows no secret."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import quote

import pytest

from headroom.alerts.delivery.exchange import MOST_BYTES, HttpAnswer, exchange, proxy_of
from headroom.alerts.delivery.http import HttpPoster
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import DeliveryError, Receiver
from headroom.alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from headroom.alerts.delivery.receivers.slack import SlackReceiver
from headroom.alerts.delivery.receivers.slack_api import SlackApi
from headroom.alerts.delivery.receivers.slack_webhook import SlackWebhookReceiver
from headroom.alerts.delivery.receivers.webhook import WebhookReceiver
from headroom.schemas.config import AlertmanagerSettings, SlackSettings, WebhookSettings
from headroom.schemas.redaction import redact, secrets_of
from tests.unit.alerts.delivery.test_outbox import until
from tests.unit.fakes.bad_servers import OK, Handler, bad_server, dripping, echoing, flooding, saying
from tests.unit.fakes.hostile import ACTING, acts
from tests.unit.fakes.receivers import Said, Scripted, event, serving

# Deadline for servers that never answer.
TIMEOUT_S = 0.6
# Deadline where one part of an answer comes in time, and the rest does not.
CUT_S = 3.0
# Deadline for servers that answer at once, but for a busy machine.
PATIENT_S = 30.0
# Of a busy machine; without a deadline each of these takes for ever.
SLACK_S = 60.0
SECRET = "s3cr3t/of+the=receiver"


def asked(url: str, most_bytes: int = MOST_BYTES, timeout_s: float = TIMEOUT_S) -> HttpAnswer:
    return exchange(url, b"{}", {}, ssl.create_default_context(), timeout_s, most_bytes)


@contextmanager
def in_time() -> Iterator[None]:
    began_s = time.monotonic()
    yield
    assert time.monotonic() - began_s < TIMEOUT_S + SLACK_S


def look_ups() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "look-up"]


def ended() -> None:
    until(lambda: not look_ups(), look_ups)


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(dripping(b"HTTP/1.1 200 ", b"O"), id="a head that drips"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), id="headers that drip"),
        pytest.param(flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="continue, without an end"),
        pytest.param(dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="continue, dripping"),
        # So long that the deadline does not meet the end of the connection after a pause of this process.
        pytest.param(lambda connection, _: time.sleep(10 * TIMEOUT_S), id="nothing"),
    ],
)
def test_a_status_that_does_not_come_is_given_up_in_time(handler: Handler) -> None:
    with bad_server(handler) as server, in_time(), pytest.raises(TimeoutError):
        asked(f"http://127.0.0.1:{server.port}/")
    ended()


@pytest.mark.parametrize("first", [OK + b"\r\n", OK + b"Content-Length: 1000000\r\n\r\n"])
def test_a_body_that_drips_is_cut_and_its_status_holds(first: bytes) -> None:
    with bad_server(dripping(first, b"x")) as server, in_time():
        answer = asked(f"http://127.0.0.1:{server.port}/", timeout_s=CUT_S)
    assert (answer.status, answer.whole) == (200, False)
    assert 0 < len(answer.body) < 100
    ended()


def test_an_endless_body_is_read_to_its_limit() -> None:
    with bad_server(flooding(OK + b"\r\n", b"x" * 65536)) as server, in_time():
        answer = asked(f"http://127.0.0.1:{server.port}/", 100_000, PATIENT_S)
    assert (answer.status, len(answer.body), answer.whole) == (200, 100_000, False)
    ended()


@pytest.mark.parametrize(("size", "whole"), [(1000, True), (1001, False)])
def test_an_answer_of_the_limit_is_whole(size: int, whole: bool) -> None:
    with bad_server(saying(OK + b"\r\n" + b"x" * size)) as server:
        answer = asked(f"http://127.0.0.1:{server.port}/", 1000, PATIENT_S)
    assert (len(answer.body), answer.whole) == (1000, whole)


def test_a_handshake_that_does_not_come_is_given_up_in_time() -> None:
    # A record of TLS's handshake, of which byte after byte comes.
    with bad_server(dripping(b"\x16\x03\x03\x40\x00", b"\x02"), reads=False) as server:
        with in_time(), pytest.raises(TimeoutError):
            asked(f"https://127.0.0.1:{server.port}/")
        ended()


def test_a_name_lookup_without_an_end_is_given_up_in_time_and_nothing_is_sent_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered, look_up = threading.Event(), socket.getaddrinfo

    def slow(*arguments: object, **options: object) -> object:
        answered.wait(2 * SLACK_S)
        return look_up(*arguments, **options)  # type: ignore[arg-type]

    with bad_server(saying(OK + b"\r\n")) as server:
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        with in_time(), pytest.raises(TimeoutError):
            asked(f"http://localhost:{server.port}/")
        answered.set()
        ended()
        assert [request for request in server.requests if request] == []


@pytest.mark.parametrize(
    "body",
    [b"\xff\xfe\x00\x80", b"\x1b[2J\r\nHTTP/1.1 200 OK\r\n\x07", ACTING.encode(), b"[" * 100_000, b'"\\ud800"'],
)
@pytest.mark.parametrize("status", ["200 OK", "500 Internal"])
def test_a_body_that_is_no_text_is_shown_in_one_printable_line(body: bytes, status: str) -> None:
    handler = saying(f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=nosuch\r\n\r\n".encode() + body)
    with bad_server(handler) as server:
        url = f"http://127.0.0.1:{server.port}/"
        try:
            answer = HttpPoster(PATIENT_S).post(url, b"{}", {})
        except DeliveryError as error:
            answer = error.answer
        slack = SlackApi(SlackSettings(channel="C0123456", api_url=url, timeout_s=PATIENT_S), lambda: SECRET)
        with pytest.raises(DeliveryError) as refused:
            slack.call("chat.postMessage")
    for text in (answer, refused.value.answer):
        assert status[:3] in text
        assert text.isprintable()
        assert len(text) <= 200
        assert acts(text) == []


def webhook(url: str) -> Receiver:
    settings = WebhookSettings(url=f"{url}/hooks/{quote(SECRET, safe='')}?token={quote(SECRET)}", timeout_s=PATIENT_S)
    return WebhookReceiver(settings, lambda: SECRET, Links(), lambda: 0)


def alertmanager(url: str, timeout_s: float = PATIENT_S) -> Receiver:
    settings = AlertmanagerSettings(url, "me", timeout_s=timeout_s)
    return AlertmanagerReceiver(settings, lambda: SECRET, Links(), lambda: 0)


def slack(url: str) -> Receiver:
    settings = SlackSettings(channel="C0123456", api_url=url, timeout_s=PATIENT_S)
    return SlackReceiver(SlackApi(settings, lambda: SECRET), "C0123456", 10, Links())


def slack_webhook(url: str) -> Receiver:
    return SlackWebhookReceiver(SlackSettings(timeout_s=PATIENT_S), lambda: f"{url}/services/{SECRET}", Links())


RECEIVERS = (webhook, alertmanager, slack, slack_webhook)


def answer_of(receiver: Receiver) -> tuple[str, str]:
    """Return the answer that is kept and logged of a delivery, and the reference."""
    try:
        receipt = receiver.deliver(event(), "", False)
    except DeliveryError as error:
        return error.answer, ""
    return receipt.answer, receipt.reference


@pytest.mark.parametrize("receiver_of", RECEIVERS)
@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "500 Internal"])
def test_a_receiver_that_repeats_the_request_gives_no_secret_away(
    receiver_of: Callable[[str], Receiver], status: str
) -> None:
    with bad_server(echoing(status)) as server:
        kept = "".join(answer_of(receiver_of(f"http://127.0.0.1:{server.port}")))
        request = server.requests[0].decode()
    basic = base64.b64encode(f"me:{SECRET}".encode()).decode()
    hidden = [form for form in (SECRET, quote(SECRET, safe=""), quote(SECRET), basic) if form in request]
    assert hidden or receiver_of is webhook, "the request had it"
    assert [form for form in hidden if form in kept] == []


@pytest.mark.parametrize("receiver_of", RECEIVERS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_delivers_nothing(receiver_of: Callable[[str], Receiver], status: int) -> None:
    elsewhere = Scripted()
    with ExitStack() as running:
        headers = {"Location": f"{running.enter_context(serving(elsewhere))}/{SECRET}"}
        url = running.enter_context(serving(Scripted(Said(status=status, headers=headers))))
        with pytest.raises(DeliveryError) as refused:
            receiver_of(url).deliver(event(), "", False)
    assert str(status) in refused.value.answer
    assert elsewhere.asked == []


def test_an_alertmanager_that_drips_holds_up_the_other_for_no_longer_than_its_timeout() -> None:
    instance = Scripted()
    with bad_server(dripping(b"HTTP/1.1 200 ", b"O")) as dripper, serving(instance) as url:
        receiver = alertmanager(f"http://127.0.0.1:{dripper.port},{url}", CUT_S)
        with in_time():
            answer, _ = answer_of(receiver)
    assert answer.startswith("1 of 2 took it")
    assert "did not answer in time" in answer
    assert len(instance.asked) == 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"ok": true}',
        b'{"ok": true, "ts": "1.0", "channel": "C1\\u001b[2J"}',
        b'{"ok": true, "ts": ["s3cr3t"]}',
        b"[]",
        b"null",
        b'{"ok": false, "error": {"a": 1}}',
        b"[" * 100_000,
    ],
)
def test_a_malformed_response_of_slack_is_a_delivery_error(body: bytes) -> None:
    with bad_server(saying(OK + b"\r\n" + body)) as server, pytest.raises(DeliveryError) as error:
        slack(f"http://127.0.0.1:{server.port}").deliver(event(), "", False)
    assert error.value.answer.startswith("slack: answered")
    assert error.value.answer.isprintable()


def test_a_history_of_slack_without_an_end_is_looked_at_for_a_while_only() -> None:
    page = b'{"ok": true, "messages": [1, {"metadata": 7}], "response_metadata": {"next_cursor": "again"}}'
    pages: list[bytes] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        pages.append(request)
        connection.sendall(OK + b"\r\n" + page)

    with bad_server(answer) as server:
        settings = SlackSettings(channel="C0123456", api_url=f"http://127.0.0.1:{server.port}", timeout_s=PATIENT_S)
        assert SlackApi(settings, lambda: SECRET).find(["a/1/firing"], 0) == {}
    assert len(pages) == 100


def test_secrets_are_found_in_every_form_that_an_answer_may_give_them() -> None:
    secret = 'a/b"c&d+e='
    forms = [secret, r"a\/b\"c&d+e=", "a%2Fb%22c%26d%2Be%3D", "a/b&quot;c&amp;d+e=", "YS9iImMmZCtlPQ=="]
    for form in forms:
        assert redact(f"<{form}>", [secret]) in ("<***>", "<***==>", "<***=>"), form
    assert redact("kept", [None, ""]) == "kept"


def test_the_parts_of_a_url_that_may_be_tokens_are_secrets_and_short_words_are_not() -> None:
    found = secrets_of("https://h/v1/T0123456789?key=abcdefgh&x=1", {"Authorization": "Bearer xoxb-1"})
    wanted = {"T0123456789", "abcdefgh", "/v1/T0123456789?key=abcdefgh&x=1", "Bearer xoxb-1", "xoxb-1"}
    assert wanted <= set(found)
    assert not {"v1", "1", "", "/"} & set(found)
    assert secrets_of("https://h/", {}) == []


def test_the_proxy_of_the_environment_is_used_except_for_the_hosts_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Scripted()
    with serving(proxy) as url:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, url.removeprefix("http://"))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "localhost")
        assert proxy_of("http://localhost:9093/") is None
        webhook("http://hooks.example").deliver(event(), "", False)
        with pytest.raises(DeliveryError):
            slack("http://slack.example").deliver(event(), "", False)
    assert [asked.path.split("?")[0].removesuffix(f"/{quote(SECRET, safe='')}") for asked in proxy.asked] == [
        "http://hooks.example/hooks",
        "http://slack.example/chat.postMessage",
    ]


def test_an_answer_that_is_not_http_is_named_in_words() -> None:
    with bad_server(saying(b"\x00\xff garbage\r\n\r\n")) as server, pytest.raises(DeliveryError) as error:
        HttpPoster(PATIENT_S).post(f"http://127.0.0.1:{server.port}", b"{}", {})
    assert error.value.answer == f"127.0.0.1:{server.port}: its answer is not HTTP"
