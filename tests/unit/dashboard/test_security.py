"""Who gets an answer, and what keeps a browser within this page."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers

from headroom.dashboard.address import View
from headroom.dashboard.rendering import VIEWS
from headroom.dashboard.security import Sessions, allowed_hosts, cookie_name, is_loopback
from headroom.dashboard.server import bind, url_of
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from tests.unit.builders.acting import ORIGIN
from tests.unit.builders.commands import run_headroom
from tests.unit.builders.dashboard_store import (
    TICK_MS,
    Client,
    DashboardStore,
    event,
    leader_row,
    new_replica,
)
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

TOKEN = "a-token-with-ü"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def require_headers(answer: httpx.Response) -> None:
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


# Names


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example:8600",
        "attacker.example",
        "",
        "127.0.0.1.attacker.example:8600",
        "localhost.attacker.example",
        "attacker.example:127.0.0.1",
        "10.0.0.1:8600",
        "0.0.0.0:8600",
        "[::2]:8600",
        "[::1].attacker.example",
        "::1",
        ":8600",
        "127.0.0.1:8600:8600",
        "127.0.0.1@attacker.example",
    ],
)
@pytest.mark.parametrize("path", ["/moves", "/api/v1/moves", "/static/page.js", "/events/moves", "/nosuch"])
def test_a_request_under_another_name_is_refused(store: DashboardStore, host: str, path: str) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10))
    answer = store.client().get(path, headers={"host": host})
    assert answer.status_code == 421
    assert "add it to dashboard.hosts" in (answer.json()["error"] if path.startswith("/api") else answer.text)
    assert "broker 1" not in answer.text
    require_headers(answer)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8600", "127.0.0.1", "localhost:8600", "LOCALHOST", "[::1]:8600", "[::1]", "localhost:80"]
)
def test_the_names_of_this_machine_are_answered_with_any_port(store: DashboardStore, host: str) -> None:
    assert store.client().get("/moves", headers={"host": host}).status_code == 200


def test_names_are_those_that_are_listened_on_and_of_the_settings() -> None:
    assert allowed_hosts("127.0.0.1", ["Proxy.Example"]) == {"localhost", "127.0.0.1", "[::1]", "proxy.example"}
    assert allowed_hosts("headroom.example", ["x"]) == {"headroom.example", "x"}
    # Every address of 127.0.0.0/8 is this machine; the page is opened under the one that is listened on.
    assert "127.0.0.2" in allowed_hosts("127.0.0.2", [])


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("[::]", False),
        ("10.0.0.1", False),
        ("headroom.example", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_only_addresses_of_this_machine_are_loopback(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own


# The command


def config(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "headroom.toml"
    store = tmp_path / "store"
    cluster = '[cluster]\nname = "prod"\nbootstrap_servers = "broker1:9092"'
    file.write_text("\n".join([cluster, f'[store]\npath = "{store}"', "[dashboard]", *lines]), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "10.0.0.1:0", "[::]:0", "headroom.example:0"])
def test_beyond_this_machine_the_command_needs_a_token(tmp_path: Path, listen: str) -> None:
    done = run_headroom("dashboard", "--listen", listen, "--config", config(tmp_path))
    assert done.exit_code == 1
    assert "lets other machines read the page, and no token is set. Set dashboard.token_file" in str(done.exception)


def test_an_empty_token_is_none(tmp_path: Path) -> None:
    done = run_headroom("dashboard", "--listen", "0.0.0.0:0", "--config", config(tmp_path, 'token = ""'))
    assert done.exit_code == 1
    assert "no token is set" in str(done.exception)


def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    # 192.0.2.0/24 is for documentation.
    with pytest.raises(HeadroomError, match=r"--listen 192\.0\.2\.1:0: cannot be listened on"):
        bind("192.0.2.1", 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.0.0.2"])
def test_every_address_of_this_machine_can_be_listened_on(host: str) -> None:
    if host == "[::1]" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with bind(host, 0) as bound:
        url = url_of(bound)
        assert url.endswith(f":{bound.getsockname()[1]}/")
        name = httpx.URL(url).netloc.decode().rpartition(":")[0]
        assert name in allowed_hosts(host, [])


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


# The token

PROTECTED = ["/", "/moves", "/api/v1/moves", "/api/v1/moves/replicas.csv", "/events/moves", "/api/v1/openapi.json"]


@pytest.mark.parametrize("path", [*PROTECTED, "/nosuch", "/static", "/staticx"])
def test_without_a_session_nothing_is_read(store: DashboardStore, path: str) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10))
    answer = store.client(token=TOKEN).get(path)
    assert answer.status_code == 401
    assert "broker 1" not in answer.text
    require_headers(answer)
    if path.startswith("/api/"):
        assert "/login" in answer.json()["error"]
    else:
        # The form is at the address that was asked for, which so is not lost.
        assert "location" not in answer.headers
        assert Markup(answer.text).all("form", **{"data-login": None})
        require_policy(answer.text)


COOKIE = cookie_name("127.0.0.1:8600")


def test_two_pages_on_a_host_have_cookies_of_their_own() -> None:
    hosts = ("127.0.0.1:8600", "127.0.0.1:8601", "headroom.example", "[::1]:8600", "[::1]", "[::1]:")
    names = [cookie_name(host) for host in hosts]
    assert names == [
        *("headroom_session_8600", "headroom_session_8601", "headroom_session"),
        *("headroom_session_8600", "headroom_session", "headroom_session"),
    ]


def opened(client: Client, token: str = TOKEN) -> httpx.Response:
    return client.post("/login", content=json.dumps({"token": token}), headers={"content-type": "application/json"})


def test_the_token_opens_a_session_in_a_cookie_that_scripts_and_other_sites_do_not_get(store: DashboardStore) -> None:
    client = store.client(token=TOKEN)
    answer = opened(client)
    assert answer.status_code == 204
    require_headers(answer)
    cookie = SimpleCookie(answer.headers["set-cookie"])[COOKIE]
    assert cookie["httponly"]
    assert (cookie["samesite"].lower(), cookie["path"], cookie["domain"]) == ("strict", "/", "")
    # 12 hours.
    assert cookie["max-age"] == "43200"
    assert TOKEN not in answer.headers["set-cookie"]
    assert len(cookie.value) >= 40
    for path in ("/moves", "/api/v1/moves", "/api/v1/openapi.json"):
        assert client.get(path).status_code == 200


def test_over_tls_the_cookie_is_for_tls_only(store: DashboardStore) -> None:
    answer = store.client(token=TOKEN).post("https://127.0.0.1:8600/login", json={"token": TOKEN})
    assert "; Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN} ", TOKEN.upper(), "\x00", "\ud800"])
def test_another_token_opens_nothing(store: DashboardStore, token: str) -> None:
    client = store.client(token=TOKEN)
    answer = opened(client, token)
    assert answer.status_code == 401
    assert answer.json() == {"error": "This is another token than that of dashboard.token."}
    assert "set-cookie" not in answer.headers
    assert client.get("/moves").status_code == 401


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"token": 3}', b'{"token": null}'])
def test_a_request_without_a_token_opens_nothing(store: DashboardStore, body: bytes) -> None:
    answer = store.client(token=TOKEN).post("/login", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "set-cookie" not in answer.headers
    require_headers(answer)


def test_the_form_of_another_site_opens_nothing(store: DashboardStore) -> None:
    """A form cannot send JSON, and without it the token is not read."""
    answer = store.client(token=TOKEN).post("/login", data={"token": TOKEN})
    assert answer.status_code == 422


@pytest.mark.parametrize("session", ["", "x", "None", "'", "a" * 5000])
def test_an_invented_session_is_none(store: DashboardStore, session: str) -> None:
    answer = store.client(token=TOKEN).get("/moves", headers={"cookie": f"{COOKIE}={session}"})
    assert answer.status_code == 401


@pytest.mark.parametrize("before", ['a={"b":1}', "a=b c", "a=é", 'a="x', "a", "a=1; a=2", "[x]=1"])
def test_cookies_of_others_on_the_same_name_do_not_end_a_session(store: DashboardStore, before: str) -> None:
    client = store.client(token=TOKEN)
    session = SimpleCookie(opened(client).headers["set-cookie"])[COOKIE].value
    answer = store.client(token=TOKEN).get("/moves", headers={"cookie": f"{COOKIE}={session}"})
    # Another process does not know it.
    assert answer.status_code == 401
    other = Client(client.app)
    cookies = f"{before}; {COOKIE}={session}".encode("latin-1")
    assert other.get("/moves", headers={b"cookie": cookies}).status_code == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_programs_send_the_token_itself(store: DashboardStore, scheme: str) -> None:
    client = store.client(token="plain")
    assert client.get("/api/v1/moves", headers={"authorization": f"{scheme} plain"}).status_code == 200
    for wrong in (f"{scheme} plai", f"{scheme}", f"{scheme}  plain", "Basic plain", "plain", f"{scheme} é"):
        answer = client.get("/api/v1/moves", headers={b"authorization": wrong.encode("latin-1")})
        assert answer.status_code == 401, wrong
        assert answer.json()["error"].startswith("A token is needed")


def test_the_oldest_of_a_thousand_sessions_ends() -> None:
    sessions = Sessions("t")
    given = [sessions.begin("t") for _ in range(1001)]
    host = {"host": "127.0.0.1:8600"}
    open_ = [sessions.is_open(Headers({**host, "cookie": f"{COOKIE}={given[n]}"})) for n in (0, 1, -1)]
    assert open_ == [False, True, True]


@pytest.mark.parametrize("path", ["/moves", "/api/v1/moves", "/nosuch", "/static/page.js"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket", None])
def test_a_page_of_another_site_reads_nothing(store: DashboardStore, path: str, site: str, mode: str | None) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10))
    headers = {"sec-fetch-site": site, **({} if mode is None else {"sec-fetch-mode": mode})}
    answer = store.client().get(path, headers=headers)
    assert answer.status_code == 403
    assert "A page of another site may lead to this one by a link" in answer.text
    require_headers(answer)


@pytest.mark.parametrize(
    "headers",
    [
        # The link of an alert, the page's own requests, an address that somebody enters, and a program.
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {},
    ],
)
def test_links_of_other_sites_and_requests_of_the_page_itself_are_answered(
    store: DashboardStore, headers: dict[str, str]
) -> None:
    for path in ("/moves", "/api/v1/moves", "/static/page.js"):
        assert store.client().get(path, headers=headers).status_code == 200


def test_a_session_ends_after_twelve_hours() -> None:
    passed_s = [0.0]
    sessions = Sessions("t", clock_s=lambda: passed_s[0])
    headers = Headers({"host": "127.0.0.1:8600", "cookie": f"{COOKIE}={sessions.begin('t')}"})
    states = []
    for now_s in (0.0, 43_199.0, 43_200.0):
        passed_s[0] = now_s
        states.append(sessions.is_open(headers))
    assert states == [True, True, False]


def test_without_a_token_there_is_no_form_for_one(store: DashboardStore) -> None:
    assert store.client().get("/login").status_code == 404


# Size


@pytest.mark.parametrize("path", ["/login", "/actions"])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_a_body_that_no_form_sends_is_refused_before_it_is_read(client: Client, path: str, announced: bool) -> None:
    """10 MB in parts of 1 kB, of which at most 64 are taken, and the one that is too much."""
    taken: list[int] = []

    async def parts() -> AsyncIterator[bytes]:
        for n in range(10_000):
            taken.append(n)
            yield b" " * 1000

    headers = {**ORIGIN, "content-type": "application/json"}
    if announced:
        headers["content-length"] = "10000000"
    answer = client.post(path, content=parts(), headers=headers)
    assert (answer.status_code, answer.json()) == (413, {"error": "A request to this page has at most 64 kB."})
    assert len(taken) == (0 if announced else 65)
    require_headers(answer)


def test_a_body_of_64_kb_is_read(store: DashboardStore) -> None:
    body = json.dumps({"token": TOKEN}).encode().ljust(64_000)
    headers = {"content-type": "application/json"}
    client = store.client(token=TOKEN)
    assert client.post("/login", content=body + b" ", headers=headers).status_code == 413
    assert client.post("/login", content=body, headers=headers).status_code == 204


@pytest.mark.parametrize("length", ["-1x", "9" * 5000])
def test_a_length_that_is_no_number_is_too_large(store: DashboardStore, length: str) -> None:
    headers = {"content-type": "application/json", "content-length": length}
    assert store.client(token=TOKEN).post("/login", content=b"{}", headers=headers).status_code == 413


# Headers and markup

HOSTILE = (
    "<script>alert(1)</script>",
    'quote"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "\x1b[2J\x00\x07",
    "\u202egnp.exe\u2066",
    "two\r\nlines",
    "{{ 7*7 }}${7*7}",
    "</title></svg>]]>",
    "javascript:alert(1)",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> DashboardStore:
    """Return a store in which every text that others write is hostile."""
    store = DashboardStore(tmp_path_factory.mktemp("hostile"))
    names = dict(enumerate(HOSTILE))
    evidence = [partition(n, topic=name) for n, name in names.items()]
    store.throttles(
        status(1, Role.LEADER, 5, 8, *evidence, in_sync_mb=6, reason=HOSTILE[0]),
        status(3, Role.FOLLOWER, 12, None, *evidence, reason=HOSTILE[1], stall=HOSTILE[0]),
    )
    store.replicas(*(new_replica(n, "never", topic=name) for n, name in names.items()))
    store.rates(*((name, n, 1, 1e6, name) for n, name in names.items()))
    store.leaders(leader_row(1, electable=30))
    store.elections(elections=30)
    store.lags((3, 1, HOSTILE[0], 0, 5))
    advice = '{"reason": "<script>alert(2)</script>", "commands": ["echo \\"<img src=x>\\"", "a\\nb"]}'
    found = [event(name, summary=name, subject=name, kind=name, recommendation=advice) for name in HOSTILE]
    store.alerts(*found, event("r", "resolved", summary=HOSTILE[0], subject=HOSTILE[1], kind=HOSTILE[2]))
    mark = {"action": "ack", "kind": HOSTILE[0], "subject": HOSTILE[0], "severity": "critical"}
    store.suppressions({**mark, "alert_id": HOSTILE[0], "by": HOSTILE[1], "note": HOSTILE[0]})
    store.deliveries(*({"receiver": name, "alert_id": name, "answer": name} for name in HOSTILE))
    store.journal(*({"run_id": name, "command": name, "subject": name, "by": name, "after": name} for name in HOSTILE))
    for name in HOSTILE[:3]:
        store.throttles(status(1, Role.LEADER, 12, 10), cluster=name)
    return store


PAGES = [
    *(f"/{view.value}" for view in View),
    "/throttles?broker=1",
    "/throttles?rate=11+MB&broker=3&role=follower",
    "/runs?run=%3Cscript%3Ealert(1)%3C/script%3E",
    "/moves?topic=%22%3E%3Cimg+src=x%3E",
    "/moves?topic=%3Cscript%3E&sort=%22%3E&state=%27%3E",
    "/moves?cluster=%3Cscript%3Ealert(1)%3C/script%3E",
    "/moves?cluster=%22onload=%22x",
    "/moves?page=%3Cscript%3E",
    "/moves?%3Cscript%3E=1",
    "/%3Cscript%3E",
    f"/alerts?at={TICK_MS}",
]


@pytest.mark.parametrize("path", PAGES)
def test_texts_of_others_come_out_as_text(hostile: DashboardStore, path: str) -> None:
    answer = hostile.client().get(path)
    assert answer.status_code in (200, 404, 422)
    require_policy(answer.text)


def require_policy(html: str) -> None:
    """Check that a page needs nothing that its policy forbids, and shows no character that is not shown."""
    page = Markup(html)
    for element in page.elements:
        assert element.tag not in ("style", "iframe", "object", "embed", "base", "img", "use", "image", "animate"), html
        for name, value in element.attributes.items():
            assert name != "style", element
            assert not name.startswith("on"), element
            if name in ("href", "src", "action", "data-events", "data-keep"):
                assert value is not None, element
                assert value.startswith(("/", "#")), element
                assert not value.startswith("//"), element
    # What is read first is what a screen reader finds first; the form for the token has no sentence.
    assert len(page.all("h1")) == (0 if page.all("form", **{"data-login": None}) else 1)
    scripts = page.all("script")
    own = [("/static/page.js", "")], [("/static/login.js", "")]
    assert [(script.attributes.get("src"), script.text) for script in scripts] in ([], *own)
    shown = "".join(page.texts("body")).replace("\n", "")
    assert shown.isprintable(), [character for character in shown if not character.isprintable()]


def test_hostile_texts_are_shown_and_not_left_out(hostile: DashboardStore) -> None:
    shown = Markup(hostile.client().get("/moves").text).texts("td")
    assert f"{HOSTILE[0]}-0" in shown
    assert r"\x1b[2J\x00\x07-3" in shown
    assert r"\u202egnp.exe\u2066-4" in shown
    assert r"two\r\nlines-5" in shown


def test_links_to_hostile_clusters_and_runs_lead_to_them(hostile: DashboardStore) -> None:
    client = hostile.client()
    runs = Markup(client.get("/runs").text)
    links = [link.attributes["href"] or "" for link in runs.all("a", class_="whole")]
    assert len(links) == len(HOSTILE)
    for link in links:
        steps = Markup(client.get(link).text)
        assert "It has no step." not in steps.page
    (clusters,) = runs.all("nav", class_="clusters")
    assert HOSTILE[0] in clusters.text


@pytest.mark.parametrize(
    ("path", "status_code"),
    [
        ("/", 307),
        ("/moves", 200),
        ("/api/v1/moves", 200),
        ("/api/v1/moves/replicas.csv", 200),
        ("/api/v1/openapi.json", 200),
        ("/static/page.js", 200),
        ("/static/login.js", 200),
        ("/static/style.css", 200),
        ("/static/icon.svg", 200),
        ("/static/nosuch.js", 404),
        ("/static/../security.py", 404),
        ("/static/%2e%2e/security.py", 404),
        ("/nosuch", 404),
        ("/moves?page=0", 422),
        ("/api/v1/moves?page=0", 422),
    ],
)
def test_every_answer_has_the_headers(hostile: DashboardStore, path: str, status_code: int) -> None:
    answer = hostile.client().get(path)
    assert answer.status_code == status_code
    require_headers(answer)


def test_a_failure_and_a_refused_method_have_the_headers(
    hostile: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setitem(VIEWS, View.LAG, fail)
    client = hostile.client()
    for answer in (client.get("/lag"), client.get("/api/v1/lag"), client.post("/moves"), client.request("HEAD", "/x")):
        assert answer.status_code in (404, 405, 500)
        require_headers(answer)


def test_the_form_for_the_token_is_open_and_within_the_policy(store: DashboardStore) -> None:
    client = store.client(token=TOKEN)
    answer = client.get("/login")
    assert answer.status_code == 200
    require_headers(answer)
    require_policy(answer.text)
    for path in ("/static/login.js", "/static/style.css"):
        assert client.get(path).status_code == 200
