"""The application: pages, their streams of changes, and the API."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from headroom.dashboard.action_pages import action_pages
from headroom.dashboard.address import Address, View
from headroom.dashboard.data.kept import keep
from headroom.dashboard.form_pages import form_pages
from headroom.dashboard.live import Live
from headroom.dashboard.rendering import (
    API,
    VIEWS,
    Regions,
    headline_json,
    render_message,
    render_page,
    render_regions,
    table_csv,
    view_json,
)
from headroom.dashboard.security import (
    HEADERS,
    LOGIN,
    LOGIN_HTML,
    SESSION_S,
    Guard,
    Sessions,
    TrustedProxies,
    cookie_name,
)
from headroom.dashboard.site import Site
from headroom.dashboard.stream import Stream, is_full, require_stream
from headroom.dashboard.views.blocks import tables_of
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line

_STATIC = Path(__file__).parent / "static"
# Ages are written anew this often, also without a tick.
_EVERY_S = 5.0
# A time that is played is shown this often.
_STEP_S = 1.0
# A part with 5,000 rows takes a megabyte.
_MOST_RENDERED = 32
_VALUE_CHARACTERS = 60
# Of an error, which may quote the plan of 2 MB that somebody has sent.
_ERROR_CHARACTERS = 2000
_NO_PAGE = "There is no such page."

_Address = Annotated[Address, Query()]


class Token(BaseModel):
    """The token that opens a session."""

    token: str


def create_app(
    site: Site, hosts: frozenset[str], token: str | None = None, proxies: TrustedProxies | None = None
) -> FastAPI:
    """Return the application.

    Args:
        site: tables and settings.
        hosts: names in requests that are answered, without their port.
        token: token that is needed; None if there is none.
        proxies: proxies that name users, who need no token; None if there are none.
    """
    live, sessions = Live(site.tables, site.clock_ms), Sessions(token, proxies)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        live.start()
        yield
        live.stop()

    # FastAPI's own pages of documentation would load from elsewhere.
    app = FastAPI(
        title="Headroom", docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json", lifespan=lifespan
    )
    app.state.end_streams = live.stop
    app.mount("/static", StaticFiles(directory=_STATIC))
    # Before the pages, whose paths are a single word too.
    if sessions.has_token:
        app.include_router(_login(sessions))
    if site.actions is not None:
        app.include_router(action_pages(site, site.actions, live))
        app.include_router(form_pages(site, site.actions))
    app.include_router(_api(site))
    app.include_router(_pages(site, live))
    _handle_errors(app)
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    app.add_middleware(Guard, hosts=hosts, sessions=sessions)
    return app


def _pages(site: Site, live: Live) -> APIRouter:
    router, rendered = APIRouter(include_in_schema=False), _Rendered(site)

    @router.get("/")
    def home(address: _Address) -> Response:
        return RedirectResponse(address.url(View.MOVES))

    @router.get("/events/{view}")
    async def events(view: View, address: _Address) -> Response:
        require_stream(live)
        return Stream(_events(live, rendered, view, address))

    @router.get("/{view}", response_class=HTMLResponse)
    def page(view: View, address: _Address) -> str:
        return render_page(site, view, address)

    return router


class _Rendered:
    """The parts of the pages that are open, rendered once for all that show the same.

    Args:
        site: tables and settings.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._known: dict[tuple[View, Address], tuple[int, float, Regions]] = {}
        # Of those that are being rendered.
        self._locks: WeakValueDictionary[tuple[View, Address], asyncio.Lock] = WeakValueDictionary()

    async def regions(self, view: View, address: Address, version: int) -> Regions:
        """Return the parts of a page as of a version of the tables, or a moment ago without a change."""
        key = view, address
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = self._known.get(key)
            now_s = time.monotonic()
            if known is not None and known[0] == version and now_s - known[1] < _EVERY_S / 2:
                return known[2]
            regions: Regions = await run_in_threadpool(render_regions, self._site, view, address)
            keep(self._known, key, (version, now_s, regions), _MOST_RENDERED)
            return regions

    def now_ms(self) -> int:
        """Return the time of this server, epoch milliseconds."""
        return self._site.clock_ms()


async def _events(live: Live, rendered: _Rendered, view: View, address: Address) -> AsyncGenerator[str, None]:
    """Yield the regions of a page that have changed since they were sent."""
    sent: dict[str, str] = {}
    yield "retry: 2000\n\n"
    # Others may have begun since the request was accepted.
    if is_full(live):
        return
    async with aclosing(live.changes(_STEP_S if address.play else _EVERY_S)) as changes:
        began_s = time.monotonic()
        async for version in changes:
            at = played(address, time.monotonic() - began_s, rendered.now_ms())
            regions = await rendered.regions(view, at, version)
            changed = {name: html for name, html in regions._asdict().items() if sent.get(name) != _digest(html)}
            sent |= {name: _digest(html) for name, html in changed.items()}
            # Also without a change: the page sees that its server is there.
            message = {"now_ms": rendered.now_ms(), "regions": changed}
            if address.play is not None:
                # What has come to the end of its range is another page, without a stream that plays.
                message |= {"at": at.at} if at.play is not None else {"goes_to": at.url(view)}
            yield f"data: {json.dumps(message)}\n\n"


def played(address: Address, passed_s: float, now_ms: int) -> Address:
    """Return the address at the moment to which its time has gone on.

    Args:
        address: of the page that is open.
        passed_s: time since it was opened, seconds.
        now_ms: current time, epoch milliseconds, where the past ends.
    """
    if address.play is None or address.at is None:
        return address
    at_ms = address.at + round(passed_s * 1000 * address.play)
    # A moment after the range that was chosen goes on to now.
    if address.until is not None and address.at <= address.until <= min(at_ms, now_ms):
        return address.model_copy(update={"at": address.until, "play": None})
    # What has come to now goes on as it comes.
    return address.model_copy(update={"at": at_ms} if at_ms < now_ms else {"at": None, "until": None, "play": None})


def _digest(html: str) -> str:
    return hashlib.blake2b(html.encode(), digest_size=16).hexdigest()


def _api(site: Site) -> APIRouter:
    router = APIRouter(prefix=API)

    @router.get("/clusters")
    def clusters() -> list[str]:
        """Return the names of all clusters."""
        return site.clusters()

    @router.get("/headline")
    def headline(address: _Address) -> dict[str, Any]:
        """Return whether the move will finish, when, and what puts it right."""
        return headline_json(site, address)

    @router.get("/{view}/{table}.csv", response_class=Response)
    def csv(view: View, table: str, address: _Address) -> Response:
        """Return all rows of one table of a view."""
        for one in tables_of(VIEWS[view](site, address)):
            if one.name == table:
                name = f"{view.value}-{table}.csv"
                headers = {"Content-Disposition": f'attachment; filename="{name}"'}
                return Response(table_csv(one, address.sort), media_type="text/csv; charset=utf-8", headers=headers)
        raise HTTPException(404, f"The view {view.value} has no table of that name.")

    @router.get("/{view}")
    def tables(view: View, address: _Address) -> dict[str, Any]:
        """Return the tables of a view, a page of each."""
        return view_json(site, view, address)

    return router


def _login(sessions: Sessions) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(LOGIN, response_class=HTMLResponse)
    def form() -> str:
        return LOGIN_HTML

    @router.post(LOGIN)
    def begin(request: Request, given: Token) -> Response:
        session = sessions.begin(given.token)
        if session is None:
            raise HTTPException(401, "This is another token than that of dashboard.token.")
        response = Response(status_code=204)
        # Behind a proxy that ends TLS only the origin says what the browser has.
        secure = "https" in (request.url.scheme, urlsplit(request.headers.get("origin", "")).scheme)
        name = cookie_name(request.headers.get("host", ""))
        response.set_cookie(name, session, max_age=SESSION_S, httponly=True, samesite="strict", secure=secure, path="/")
        return response

    return router


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        # A view that there is not.
        if error.errors()[0]["loc"][0] == "path":
            return _answer(request, 404, "Refused", _NO_PAGE)
        return _answer(request, 422, "Address", _invalid_text(error))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        text = _NO_PAGE if error.status_code == 404 and error.detail == "Not Found" else error.detail
        return _answer(request, error.status_code, "Refused", text)

    @app.exception_handler(HeadroomError)
    async def on_error(request: Request, error: HeadroomError) -> Response:
        # What is asked for is in conflict with what is; what is only read cannot be.
        return _answer(request, 503 if request.method == "GET" else 409, "Unreadable", str(error))

    @app.exception_handler(Exception)
    async def on_failure(request: Request, _: Exception) -> Response:
        answer = _answer(request, 500, "Failed", "The page failed; the log of headroom dashboard has the reason.")
        # This answer does not pass the guard.
        answer.headers.update(HEADERS)
        return answer


def _invalid_text(error: RequestValidationError) -> str:
    """Return which key of an address is wrong, and what it may be."""
    first = error.errors()[0]
    key = str(first["loc"][-1])
    value = one_line(str(first.get("input"))[:_ERROR_CHARACTERS], _VALUE_CHARACTERS)
    keys = ", ".join(Address.model_fields)
    if first["type"] == "extra_forbidden":
        return f"{key} is not a key of an address. There are: {keys}."
    return f"{key}={value} is not valid: {first['msg']}."


def _answer(request: Request, status: int, title: str, text: str) -> Response:
    # With halves of surrogate pairs, which JSON may have, there would be no answer.
    text = one_line(text[: 2 * _ERROR_CHARACTERS], _ERROR_CHARACTERS)
    if request.url.path.startswith("/api/") or request.method != "GET":
        return JSONResponse({"error": text}, status)
    return HTMLResponse(render_message(title, text), status)
