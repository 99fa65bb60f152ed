"""Users whom a trusted proxy names: from where a name counts, what it may do, and where it is written."""

from __future__ import annotations

import getpass
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from headroom.dashboard.security import TrustedProxies
from headroom.dashboard.server import bind, serve, url_of
from headroom.operations.journal.session import author
from headroom.schemas.environment import USER, user_name
from headroom.schemas.keys import Role
from headroom.schemas.quantities import parse_machines
from tests.unit.builders.acting import ORIGIN, RAISE, TOKEN, Clock, Program, buttons, until
from tests.unit.builders.commands import run_headroom
from tests.unit.builders.dashboard_store import Client, DashboardStore, event
from tests.unit.builders.throttle_status import status
from tests.unit.dashboard.markup import Markup

PROXY = "10.0.0.5"
HEADER = "X-Forwarded-User"
ANNA = {HEADER: "anna"}
PROXIES = TrustedProxies(HEADER, parse_machines(f"{PROXY},fd00::5"))


@pytest.fixture
def written(store: DashboardStore) -> DashboardStore:
    """Return a store with an alert that has a command."""
    store.throttles(status(1, Role.LEADER, 12, 10))
    store.alerts(event("a", recommendation=f'{{"reason": "it is too low", "commands": ["{RAISE}"]}}'))
    return store


def client_at(
    written: DashboardStore, program: Program, clock: Clock, peer: str = PROXY, token: str | None = None
) -> Client:
    return Client(written.acting_app(token, clock, program.command_line, PROXIES), peer)


@pytest.fixture
def proxy(written: DashboardStore, program: Program, clock: Clock) -> Client:
    """Return a client that is the proxy; there is no token."""
    return client_at(written, program, clock)


def offer_of(client: Client, headers: Any = None) -> str:
    return buttons(client.get("/alerts", headers=headers or ANNA), "data-run")[0]


# Where a name counts


@pytest.mark.parametrize(
    "peer",
    ["10.0.0.6", "10.0.0.50", "127.0.0.1", "::1", "::ffff:10.0.0.6", "fd00::6", "fd00::5%eth0", "", "10.0.0.5 ", "x"],
)
@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_name_from_elsewhere_is_forged(
    written: DashboardStore, program: Program, clock: Clock, peer: str, token: str | None
) -> None:
    proxied = client_at(written, program, clock, token=token)
    offer = offer_of(proxied)
    other = Client(proxied.app, peer)
    forged = {**ANNA, **ORIGIN, "X-Forwarded-For": PROXY, "X-Real-IP": PROXY, "Forwarded": f"for={PROXY}"}
    for path in ("/moves", "/api/v1/moves", "/events/moves", "/new/move"):
        answer = other.get(path, headers=forged)
        assert answer.status_code == 401, path
        assert "broker 1" not in answer.text
    assert other.post("/actions", json={"offer": offer}, headers=forged).status_code == 401
    form = {"cluster": "prod", "values": {"drain": "3"}}
    assert other.post("/new/move", json=form, headers=forged).status_code == 401
    assert program.calls() == []


@pytest.mark.parametrize("peer", [PROXY, f"::ffff:{PROXY}", "fd00::5", "FD00:0::5"])
def test_a_name_of_a_proxy_counts(written: DashboardStore, program: Program, clock: Clock, peer: str) -> None:
    client = client_at(written, program, clock, peer)
    assert client.get("/moves", headers=ANNA).status_code == 200
    assert client.post("/actions", json={"offer": offer_of(client)}, headers={**ANNA, **ORIGIN}).status_code == 201


@pytest.mark.parametrize(
    "names",
    [
        [],
        [b""],
        [b"  "],
        [b"anna", b"admin"],
        [b"anna", b""],
        [b"a\x1b[2J"],
        [b"a\tb"],
        ["a\u202eb".encode()],
        [b"\xff"],
        [b"a" * 255],
    ],
)
def test_a_name_that_is_none_or_not_the_only_one_does_not_count(proxy: Client, names: list[bytes]) -> None:
    answer = proxy.get("/moves", headers=[(HEADER.encode(), name) for name in names])
    assert answer.status_code == 401
    assert "names nobody" in answer.text
    assert proxy.get("/api/v1/moves", headers=[]).json()["error"].startswith("Open this page through its proxy")


@pytest.mark.parametrize("header", ["X-Forwarded_User", "X_Forwarded_User", "X-Forwarded-Users", "Remote-User"])
def test_no_other_header_has_a_name(proxy: Client, header: str) -> None:
    assert proxy.get("/moves", headers={header: "anna"}).status_code == 401


def test_no_header_that_a_proxy_passes_on_changes_who_connects(
    written: DashboardStore, program: Program, clock: Clock
) -> None:
    """The server that users start trusts ``X-Forwarded-For`` of 127.0.0.1 by default."""
    app = written.acting_app(None, clock, program.command_line, PROXIES)
    stop = threading.Event()
    with bind("127.0.0.1", 0) as bound:
        server = threading.Thread(target=serve, args=(app, bound, stop))
        server.start()
        try:
            forged = {**ANNA, "X-Forwarded-For": PROXY, "X-Forwarded-Proto": "https"}
            answer = httpx.get(f"{url_of(bound)}moves", headers=forged, timeout=20, trust_env=False)
            assert answer.status_code == 401
        finally:
            stop.set()
            server.join()


# What it may do


@pytest.mark.parametrize(
    "origin",
    [
        {},
        {"origin": "null"},
        {"origin": "http://attacker.example"},
        {"origin": "http://127.0.0.1:8600.attacker.example"},
        {"origin": "http://127.0.0.1:8601"},
        # As a browser adds it by itself, and a proxy passes it on.
        {"authorization": "Basic YW5uYTpwYXNz"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"cookie": "_oauth2_proxy=x"},
    ],
)
def test_a_proxy_names_users_of_other_pages_too_so_that_their_origin_counts(
    written: DashboardStore, program: Program, clock: Clock, origin: dict[str, str]
) -> None:
    client = client_at(written, program, clock, token=TOKEN)
    offer = offer_of(client)
    form = {"cluster": "prod", "values": {"drain": "3"}}
    for path, content in (("/actions", {"offer": offer}), ("/new/move", form), ("/actions/x/change", {})):
        assert client.post(path, json=content, headers={**ANNA, **origin}).status_code == 403, path
    assert program.calls() == []


def test_another_name_of_the_page_is_refused_from_a_proxy_too(proxy: Client) -> None:
    assert proxy.get("/moves", headers={**ANNA, "host": "attacker.example"}).status_code == 421


def test_a_program_with_the_token_needs_no_origin_behind_a_proxy(
    written: DashboardStore, program: Program, clock: Clock
) -> None:
    client = client_at(written, program, clock, token=TOKEN)
    headers = {**ANNA, "authorization": f"Bearer {TOKEN}"}
    assert client.post("/actions", json={"offer": offer_of(client)}, headers=headers).status_code == 201


def test_the_token_opens_a_session_beside_a_proxy(written: DashboardStore, program: Program, clock: Clock) -> None:
    client = client_at(written, program, clock, "127.0.0.1", TOKEN)
    assert client.get("/moves").status_code == 401
    assert client.post("/login", json={"token": TOKEN}, headers=ORIGIN).status_code == 204
    assert client.get("/moves").status_code == 200


def test_without_a_token_there_is_no_form_for_one_beside_a_proxy(proxy: Client) -> None:
    assert "data-login" not in proxy.get("/moves").text
    assert proxy.post("/login", json={"token": ""}, headers={**ANNA, **ORIGIN}).status_code in (404, 405)


def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_only(store: DashboardStore) -> None:
    headers = {"origin": "https://127.0.0.1:8600"}
    answer = store.client(token=TOKEN).post("/login", json={"token": TOKEN}, headers=headers)
    assert "; Secure" in answer.headers["set-cookie"]


# Where it is written


def test_what_is_carried_out_has_its_user_as_author(proxy: Client, program: Program) -> None:
    url = proxy.post("/actions", json={"offer": offer_of(proxy)}, headers={**ANNA, **ORIGIN}).json()["url"]
    until(lambda: bool(buttons(proxy.get(url, headers=ANNA), "data-post")))
    bob = {HEADER: "bob@example.com"}
    assert proxy.post(f"{url}/change", json={}, headers={**bob, **ORIGIN}).status_code == 202
    until(lambda: "Done." in proxy.get(url, headers=ANNA).text)
    assert program.users() == ["anna", "bob@example.com"]
    assert "by anna" in proxy.get(url, headers=ANNA).text
    rows = proxy.get("/api/v1/runs", headers=ANNA).json()["actions"]["rows"]
    assert [row["by"] for row in rows] == ["anna"]


def test_whoever_has_the_token_has_no_other_name(client: Client, program: Program, monkeypatch: Any) -> None:
    monkeypatch.setenv(USER, "mallory")
    url = client.post("/actions", json={"offer": offer_of(client)}, headers={**ANNA, **ORIGIN}).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    assert program.users() == [""]


def test_the_name_of_a_user_comes_out_as_text(proxy: Client) -> None:
    hostile = {HEADER: "<script>alert(1)</script>"}
    url = proxy.post("/actions", json={"offer": offer_of(proxy)}, headers={**hostile, **ORIGIN}).json()["url"]
    for path in (url, "/runs"):
        page = Markup(proxy.get(path, headers=hostile).text)
        assert [script.attributes.get("src") for script in page.all("script")] == ["/static/page.js"]
        assert any("<script>alert(1)</script>" in text for text in page.texts("body"))


def test_an_author_of_the_page_is_on_the_machine_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is gone on with on the machine after the last ``@``."""
    assert author() == f"{getpass.getuser()}@{socket.gethostname()}"
    monkeypatch.setenv(USER, "anna@elsewhere")
    assert author() == f"anna@elsewhere@{socket.gethostname()}"
    assert user_name() == "anna@elsewhere"


# The command


@pytest.mark.parametrize("line", ['proxy_user_header = "X-User"', 'trusted_proxies = "10.0.0.5"'])
def test_the_page_is_not_served_with_half_of_the_settings(tmp_path: Path, line: str) -> None:
    file = tmp_path / "headroom.toml"
    file.write_text(
        f'[cluster]\nname = "prod"\nbootstrap_servers = "a:1"\n[store]\npath = "{tmp_path}"\n[dashboard]\n{line}\n'
    )
    done = run_headroom("dashboard", "--listen", "127.0.0.1:0", "--config", str(file))
    assert done.exit_code != 0
    assert "dashboard." in str(done.exception)
