"""Who may ask: names of this server, the token, and the headers that keep a browser within this origin."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headroom.dashboard.acting.forms import FormName
from headroom.dashboard.data.kept import keep
from headroom.dashboard.rendering import render_message
from headroom.schemas.quantities import IpAddress, machine_address

_COOKIE = "headroom_session"
LOGIN = "/login"
# Of paths that anybody may ask for: what the page for the token is made of.
_OPEN = (LOGIN, "/static/")
_READING = ("GET", "HEAD")
# A working day: then the token is asked for again. Cookie and session end together.
SESSION_S = 43_200
# The largest form takes some kilobytes. More would be kept in memory as a whole, and /login takes it from anybody.
_MOST_BODY_BYTES = 64_000
_TOO_LARGE = "A request to this page has at most 64 kB."
# A plan of some 30,000 partitions, from whoever may carry one out.
_PLAN_FORM = f"/new/{FormName.FILE.value}"
MOST_PLAN_BYTES = 2_000_000
PLAN_TOO_LARGE = "A plan that is sent to this page has at most 2 MB: carry a larger one out by headroom reassign run."
_NO_USER = "Open this page through its proxy, which says who asks: this request comes from elsewhere, or names nobody."
# Where a request has the user that its proxy names, as names of extensions of ASGI are written.
_USER = "headroom.user"
# As long as addresses of e-mail may be.
_MOST_USER_CHARACTERS = 254
# The form that asks for the token.
LOGIN_HTML = (Path(__file__).parent / "static" / "login.html").read_text(encoding="utf-8")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def cookie_name(host: str) -> str:
    """Return the name of the session's cookie, by the ``Host`` of a request.

    Browsers send a cookie to every port of a host, so that two pages would overwrite each other's.
    """
    _, _, port = host.rpartition(":")
    return f"{_COOKIE}_{port}" if port.isdigit() else _COOKIE


def is_loopback(host: str) -> bool:
    """Return whether an address or name is that of this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_hosts(listen_host: str, hosts: Sequence[str]) -> frozenset[str]:
    """Return the names in requests that are answered, in small letters.

    Args:
        listen_host: address or name that is listened on.
        hosts: further names, of the settings.
    """
    own = ("localhost", "127.0.0.1", "[::1]") if is_loopback(listen_host) else ()
    return frozenset(name.lower() for name in (listen_host, *own, *hosts))


class TrustedProxies:
    """Proxies before the page, which name the user of each request.

    Args:
        header: header that has the name.
        addresses: addresses of the proxies; from elsewhere the header counts for nothing.
    """

    def __init__(self, header: str, addresses: Collection[IpAddress]) -> None:
        self._header = header.lower().encode("ascii")
        self._addresses = frozenset(addresses)

    def user(self, scope: Scope) -> str | None:
        """Return the user of a request; None if it is not from one of the proxies, or they name nobody."""
        client = scope.get("client")
        if client is None or machine_address(client[0]) not in self._addresses:
            return None
        given = [value for name, value in scope["headers"] if name.lower() == self._header]
        # A second one is that of the browser, which the proxy should have removed: whose is which is not known.
        if len(given) != 1:
            return None
        try:
            user = given[0].decode("utf-8").strip(" \t")
        except UnicodeDecodeError:
            return None
        return user if user.isprintable() and 0 < len(user) <= _MOST_USER_CHARACTERS else None


def user_of(scope: Scope) -> str | None:
    """Return the user of a request, as a trusted proxy has named it; None if none has."""
    user: str | None = scope.get(_USER)
    return user


class Sessions:
    """The token, the sessions that it was exchanged for, and the proxies whose users need neither.

    Args:
        token: the token; None: there is none.
        proxies: proxies that name users; None: none does. Without them and without a token everybody may read.
        clock_s: returns a time that only grows, seconds.
    """

    # A person has some devices; the oldest session ends.
    _MOST = 1000

    def __init__(
        self,
        token: str | None,
        proxies: TrustedProxies | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token = token
        self._proxies = proxies
        self._clock_s = clock_s
        # When each began.
        self._open: dict[str, float] = {}

    @property
    def is_needed(self) -> bool:
        """Return whether a session, or a user of a proxy, is needed."""
        return self.has_token or self._proxies is not None

    @property
    def has_token(self) -> bool:
        """Return whether there is a token."""
        return self._token is not None

    def user(self, scope: Scope) -> str | None:
        """Return the user of a request whom a trusted proxy names; None if none does."""
        return None if self._proxies is None else self._proxies.user(scope)

    def begin(self, token: str) -> str | None:
        """Return a new session for the token; None if it is another one."""
        if not self._is_token(token):
            return None
        session = secrets.token_urlsafe(32)
        keep(self._open, session, self._clock_s(), self._MOST)
        return session

    def is_open(self, headers: Headers) -> bool:
        """Return whether a request belongs to a session, or has the token itself, as programs send it."""
        if self._token is None:
            return not self.is_needed
        if self.has_token_in(headers):
            return True
        # The standard library's reader stops at the first cookie of others that does not keep to the standard.
        session = cookie_parser(headers.get("cookie", "")).get(cookie_name(headers.get("host", "")))
        began_s = None if session is None else self._open.get(session)
        return began_s is not None and self._clock_s() - began_s < SESSION_S

    def has_token_in(self, headers: Headers) -> bool:
        """Return whether a request has the token itself: no browser adds it to a request of another page."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(token)

    def _is_token(self, token: str) -> bool:
        # JSON may have halves of surrogate pairs.
        given = token.encode(errors="surrogatepass")
        return self._token is not None and hmac.compare_digest(given, self._token.encode())


class Guard:
    """Refuses requests by their name, session and size, and adds the headers to every answer.

    Args:
        app: the application.
        hosts: names that are answered, without their port.
        sessions: sessions.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], sessions: Sessions) -> None:
        self._app = app
        self._hosts = hosts
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path, user = scope["method"], scope["path"], self._sessions.user(scope)
        refusal = self._refusal(method, path, Headers(scope=scope), user)
        scope[_USER] = user
        await (refusal or self._app)(scope, _limited(receive, method, path), _with_headers(send))

    def _refusal(self, method: str, path: str, headers: Headers, user: str | None) -> Response | None:
        # A page of another site that reaches this server under the other site's name must not read it (DNS rebinding).
        host = _without_port(headers.get("host", "")).lower()
        if host not in self._hosts:
            text = "This name is not one of this page's: add it to dashboard.hosts, or use the address it listens on."
            return _refusal_page(path, 421, "Another name", text)
        if method in _READING and _is_of_other_site(headers):
            text = "A page of another site may lead to this one by a link, and read nothing else of it."
            return _refusal_page(path, 403, "Another site", text)
        # The name that a proxy adds goes along with requests of every page, as a cookie does.
        is_by_itself = user is None or self._sessions.has_token_in(headers)
        if method not in _READING and not _is_own(headers, is_by_itself):
            text = "This request comes from another page: open this page at the address that its server has."
            return _json_refusal(403, text)
        most_bytes, too_large = _most_bytes(path)
        if _is_too_large(headers, most_bytes):
            return _json_refusal(413, too_large)
        if path.startswith(_OPEN) or user is not None or self._sessions.is_open(headers):
            return None
        text = f"A token is needed: open {LOGIN}." if self._sessions.has_token else _NO_USER
        if method not in _READING or path.startswith("/api/"):
            return _json_refusal(401, text)
        # The form stands in for the page, so that the address, such as that of an alert, is not lost.
        page = LOGIN_HTML if self._sessions.has_token else render_message("Who asks?", text)
        return HTMLResponse(page, 401)


def _is_own(headers: Headers, is_by_itself: bool) -> bool:
    """Return whether a request that may change something comes from this page, or from a program with the token.

    A cookie goes along with requests of every server of this host, whatever its port; the origin tells them apart.

    Args:
        headers: headers of the request.
        is_by_itself: whether nothing was added to it, such as the user by a proxy, that would be added for every page.
    """
    origin = headers.get("origin")
    if origin is None:
        return is_by_itself and "cookie" not in headers
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def _is_of_other_site(headers: Headers) -> bool:
    """Return whether a page of another site has the browser read something, other than by a link to it.

    It could not read the answers, but its requests would take the streams of all pages. Browsers tell where they are
    from if the page is on their machine, or comes over TLS.
    """
    is_of_other = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return is_of_other and headers.get("sec-fetch-mode") != "navigate"


def _most_bytes(path: str) -> tuple[int, str]:
    """Return the most bytes of a request to a path, and what is said of one with more."""
    return (MOST_PLAN_BYTES, PLAN_TOO_LARGE) if path == _PLAN_FORM else (_MOST_BODY_BYTES, _TOO_LARGE)


def _is_too_large(headers: Headers, most_bytes: int) -> bool:
    """Return whether a request announces a body of more than the most bytes; a chunked one announces nothing."""
    try:
        return int(headers.get("content-length", "0")) > most_bytes
    except ValueError:
        return True


def _json_refusal(status: int, text: str) -> Response:
    return JSONResponse({"error": text}, status)


def _refusal_page(path: str, status: int, title: str, text: str) -> Response:
    if path.startswith("/api/"):
        return _json_refusal(status, text)
    return HTMLResponse(render_message(title, text), status)


def _without_port(host: str) -> str:
    # An IPv6 address is in brackets, and has colons of its own.
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _limited(receive: Receive, method: str, path: str) -> Receive:
    """Return a receiver that refuses a body once more than the most bytes of it have come."""
    received_bytes = 0
    most_bytes, too_large = _most_bytes(path)

    async def receive_limited() -> Message:
        nonlocal received_bytes
        message = await receive()
        received_bytes += len(message.get("body", b""))
        if received_bytes <= most_bytes:
            return message
        # What only reads takes no body. Its answer may have begun, so that it cannot be refused any more.
        if method in _READING:
            return {"type": "http.disconnect"}
        # The application answers it, as it does every other refusal of its own.
        raise HTTPException(413, too_large)

    return receive_limited


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
