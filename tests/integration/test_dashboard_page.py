"""``headroom dashboard`` in a real browser: what only a browser does with the page."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from benchmarks.groups.dashboard.accessibility import form_paths, grave_findings, paths
from headroom.dashboard.acting.forms import FormName
from headroom.dashboard.address import View
from headroom.schemas.keys import Role
from headroom.schemas.tables import ALERT_MARKS
from tests.integration.support import exit_code, wait_until
from tests.unit.builders.dashboard_store import DashboardStore, event, leader_row, new_replica
from tests.unit.builders.migration_progress import doomed, progress, switched
from tests.unit.builders.throttle_status import partition, status

api = pytest.importorskip("playwright.sync_api", reason="the page is opened through playwright, which is not installed")
_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in _NAMES if (path := shutil.which(name))), None)
# The last test ends the server.
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=f"the page is opened in a browser, and there is none of {_NAMES}"),
    pytest.mark.random_order(disabled=True),
]

PAGES = [
    *(f"/{view.value}" for view in View),
    "/throttles?broker=1",
    "/throttles?rate=11+MB",
    "/runs?run=r1",
    "/moves?page=0",
    "/nosuch",
]
COMMANDS = ["headroom throttle apply --rate 9600000 --config 'a b.toml'", "kafka-configs.sh --alter"]
ADVICE = json.dumps({"reason": "it is too low", "commands": COMMANDS, "throttle_bytes_per_s": 9_600_000})
# What a violated policy says goes to the console too, as a reason of its own.
WATCH_POLICY = """document.addEventListener("securitypolicyviolation",
    (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));"""
LEADER = status(1, Role.LEADER, 5.6, 8, partition(topic="a-topic-with-a-long-name-" * 4), in_sync_mb=6)
FOLLOWER = status(3, Role.FOLLOWER, 12, 8, partition(), in_sync_mb=0)


def now_ms() -> int:
    return round(time.time() * 1000)


def fill(store: DashboardStore) -> None:
    """Write a tick of now, with a row for every view and a command to copy."""
    tick_ms = now_ms()
    for before_ms in (20_000, 10_000):
        store.throttles(LEADER, FOLLOWER, tick_ms=tick_ms - before_ms)
    long_name = "a-topic-with-a-long-name-" * 8
    rows = [new_replica(n, topic="orders") for n in range(30)]
    store.replicas(*rows, new_replica(0, "never", topic=long_name), tick_ms=tick_ms)
    store.rates((long_name, 0, 1, 2e6, "log_size"), tick_ms=tick_ms)
    store.leaders(leader_row(1), leader_row(2, electable=30), tick_ms=tick_ms)
    store.elections(elections=30, tick_ms=tick_ms)
    store.lags((3, 1, "t", 0, 5), (3, 2, "t", 1, None), tick_ms=tick_ms)
    store.migrations(progress(0, groups=(doomed(),)), switched(1), tick_ms=tick_ms)
    store.alerts(event("a", tick_ms=tick_ms, recommendation=ADVICE), event("b", "resolved", tick_ms))
    store.deliveries({"delivery_ms": tick_ms})
    store.journal({"at_ms": tick_ms, "after": "x" * 300}, {"state": "done", "at_ms": tick_ms})
    # A move that nothing carries on.
    store.journal({"run_id": "r2", "step": "run", "subject": "f", "at_ms": tick_ms})
    # It is written last: the tick is complete.
    store.throttles(LEADER, FOLLOWER, tick_ms=tick_ms)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DashboardStore:
    """Return a store with a tick of now."""
    store = DashboardStore(tmp_path_factory.mktemp("dashboard") / "store")
    fill(store)
    return store


def errors_of(store: DashboardStore) -> Path:
    """Return the file with what the server reports."""
    return store.path.parent / "errors.txt"


@pytest.fixture(scope="module")
def server(store: DashboardStore) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Return the address of the page, and its process."""
    with served(store) as serving:
        yield serving


@contextmanager
def served(store: DashboardStore, *lines: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve the page of a store with some settings of the page."""
    config = store.path.parent / "headroom.toml"
    cluster = '[cluster]\nname = "prod"\nbootstrap_servers = "broker1:9092"'
    page = "\n".join(["[dashboard]", *lines])
    config.write_text(f'{cluster}\n[store]\npath = "{store.path}"\n{page}\n', encoding="utf-8")
    command = [sys.executable, "-m", "headroom.cli.main", "dashboard", "--listen", "127.0.0.1:0"]
    command += ["--config", str(config)]
    with (
        errors_of(store).open("w", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Dashboard: http://127.0.0.1:"), first
        try:
            yield first.split()[1].rstrip("/"), process
        finally:
            # A test may have ended it.
            process.terminate()
            exit_code(process, 20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return the browser."""
    with api.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page in a context of its own.

    Args:
        browser: the browser.
        url: address of the server.
        options: of the context.
    """

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.context = browser.new_context(base_url=url, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.problems: list[str] = []
        self.page.add_init_script(WATCH_POLICY)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"{self.page.url}: {error}"))

    def _on_console(self, message: Any) -> None:
        # The status of a page that is refused on purpose is one of the browser's own messages.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.problems.append(f"{self.page.url}: {message.text}")

    def open(self, path: str) -> Any:
        """Open a page and return it, once its script has run."""
        self.page.goto(path, wait_until="load")
        return self.page


@pytest.fixture
def tab(browser: Any, server: tuple[str, subprocess.Popen[str]]) -> Iterator[Tab]:
    """Return a new page in India, whose time is 5 h 30 min ahead."""
    tab = Tab(browser, server[0], timezone_id="Asia/Kolkata", viewport={"width": 1280, "height": 900})
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield tab
    tab.context.close()
    assert tab.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_an_error_or_violates_its_policy(
    browser: Any, server: tuple[str, subprocess.Popen[str]], scheme: str
) -> None:
    tab = Tab(browser, server[0], color_scheme=scheme)
    colors = set()
    for path in PAGES:
        page = tab.open(path)
        colors.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert page.locator(".headline").count() == 1
    tab.context.close()
    assert tab.problems == []
    assert colors == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)"}


# It has both parts.
SHOW_A_FIRST_MESSAGE = """() => new Promise((resolve) => {
    const source = new EventSource(document.body.dataset.events);
    source.onmessage = (event) => {
        source.close();
        show(JSON.parse(event.data).regions);
        resolve();
    };
})"""


def test_what_a_stream_brings_has_no_error_either(tab: Tab) -> None:
    page = tab.open("/throttles?broker=1")
    page.evaluate("document.getElementById('content').textContent = ''")
    page.evaluate(SHOW_A_FIRST_MESSAGE)
    assert page.locator("#content figure svg").count() == 1
    assert page.locator("#status").text_content() == ""


def test_the_body_does_not_scroll_sideways_on_a_narrow_screen(
    browser: Any, server: tuple[str, subprocess.Popen[str]]
) -> None:
    tab = Tab(browser, server[0], viewport={"width": 360, "height": 740})
    widths = {path: tab.open(path).evaluate("document.documentElement.scrollWidth") for path in PAGES}
    tab.context.close()
    assert {path: width for path, width in widths.items() if width > 360} == {}


REACHABLE = "a[href], button, input, select, summary, [tabindex='0']"


@pytest.mark.parametrize("path", ["/moves", "/alerts", "/throttles?broker=1"])
def test_the_keyboard_reaches_every_control(tab: Tab, path: str) -> None:
    page = tab.open(path)
    # A part that it replaces meanwhile would have new elements.
    page.evaluate("source?.close()")
    # What is inside closed details is reached once they are open.
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    count = page.evaluate(
        f'[...document.querySelectorAll("{REACHABLE}")].filter((e) => !e.hidden)'
        ".map((e, n) => e.setAttribute('data-n', n)).length"
    )
    reached = set()
    # A date has a stop for each of its parts.
    for _ in range(count + 20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('data-n')"))
    missing = set(map(str, range(count))) - reached
    names = [page.evaluate(f"document.querySelector('[data-n=\"{n}\"]')?.outerHTML.slice(0, 120)") for n in missing]
    assert names == []
    assert len(reached) > 10


def test_the_first_stop_leads_to_the_content(tab: Tab) -> None:
    page = tab.open("/moves")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    wait_until(lambda: page.evaluate("document.activeElement.id") == "content", 10, "the focus on the content")


def test_a_new_tick_is_shown_without_a_reload(tab: Tab, store: DashboardStore) -> None:
    page = tab.open("/moves")
    page.evaluate("window.isSamePage = true")
    tick_ms = now_ms()
    store.replicas(*(new_replica(n, topic="came") for n in range(7)), tick_ms=tick_ms)
    store.throttles(LEADER, FOLLOWER, tick_ms=tick_ms)
    page.wait_for_selector("text=7 with 7 new replicas")
    assert page.locator("td", has_text="came-6").count() == 1
    assert page.evaluate("window.isSamePage")
    # An age that grows by itself.
    assert "s ago" in page.locator("[data-age-of]").first.text_content()


def test_a_page_whose_stream_was_refused_asks_for_it_again(tab: Tab) -> None:
    """A proxy answers 502 while the server starts again; browsers give such a stream up."""
    answers = iter([502, 503])

    def refuse_twice(route: Any) -> None:
        status_code = next(answers, None)
        if status_code is None:
            route.continue_()
        else:
            route.fulfill(status=status_code, body="not yet")

    tab.page.route("**/events/**", refuse_twice)
    page = tab.open("/moves")
    page.evaluate("document.getElementById('content').textContent = ''")
    page.wait_for_selector("#content td")


def test_what_is_open_or_has_the_focus_stays_so_when_a_tick_comes(tab: Tab, store: DashboardStore) -> None:
    page = tab.open("/alerts")
    summary = page.locator("#headline details > summary").first
    summary.focus()
    page.keyboard.press("Enter")
    text = f"summary {now_ms()}"
    store.alerts(event("new", tick_ms=now_ms(), severity="warning", summary=text))
    page.wait_for_selector(f"#headline >> text={text}.")
    assert page.locator("#headline details").first.get_attribute("open") is not None
    assert page.evaluate("document.activeElement.localName") == "summary"


def test_times_are_shown_in_utc_or_in_those_of_the_browser(tab: Tab) -> None:
    page = tab.open("/health")
    first = page.locator("td time").first
    shown_ms = int(first.get_attribute("data-ms"))
    utc = datetime.fromtimestamp(shown_ms // 1000, timezone.utc)
    assert first.text_content() == f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    page.get_by_role("button", name="Times: UTC").click()
    local = f"{utc + timedelta(hours=5, minutes=30):%Y-%m-%d %H:%M:%S}"
    assert first.text_content() == local
    # The choice is kept.
    page = tab.open("/health")
    assert page.locator(f"td time[data-ms='{shown_ms}']").first.text_content() == local
    page.get_by_role("button", name="Times: local").click()
    assert "UTC" in page.locator("td time").first.text_content()


REPLACED_AFTER_ANSWER = """() => new Promise((resolve) => {
    const content = document.getElementById("content");
    const look = () => {
        if (!content.innerHTML.includes("Copied")) return requestAnimationFrame(look);
        show({ content: content.innerHTML.replace("Copied", "Copy") });
        resolve(content.innerHTML.includes("Copied"));
    };
    look();
})"""


def test_a_command_is_copied_as_it_is(tab: Tab) -> None:
    page = tab.open("/alerts")
    button = page.locator("#content .commands .command button").first
    button.click()
    # A tick replaces the part with the button, which the browser does here as soon as it has answered.
    assert page.evaluate(REPLACED_AFTER_ANSWER)
    assert page.evaluate("navigator.clipboard.readText()") == COMMANDS[0]
    wait_until(lambda: button.text_content() == "Copy", 20, "the button's own text", button.text_content)


def test_an_alert_is_acknowledged_from_the_page(browser: Any, tmp_path: Path) -> None:
    """By the command itself, once, though its button is clicked twice and the page is closed in between."""
    store = DashboardStore(tmp_path / "store")
    fill(store)
    with served(store, 'token = "a-token"') as (url, _):
        tab = Tab(browser, url)
        page = tab.open("/alerts")
        page.get_by_label("Token").fill("a-token")
        with page.expect_navigation():
            page.get_by_role("button", name="Open").click()
        page = tab.open("/alerts")
        page.get_by_text("Acknowledge or silence").click()
        with page.expect_navigation():
            page.locator("#content details .command", has_text="alerts ack").get_by_role("button", name="Run…").click()
        action = urlsplit(page.url).path
        page.get_by_role("button", name="Carry it out on prod").dblclick()
        page.close()
        tab.page = tab.context.new_page()
        page = tab.open(action)
        page.wait_for_selector("text=Done.")
        assert "cknowledged" in page.locator("pre").text_content()
        assert page.get_by_role("button", name="Carry it out").count() == 0
        page = tab.open("/alerts")
        assert page.locator("article.card", has_text="acknowledged").count() == 1
        page = tab.open("/runs")
        with page.expect_navigation():
            page.get_by_role("link", name="alerts ack").click()
        assert urlsplit(page.url).path == action
        tab.context.close()
        assert tab.problems == []
        rows = store.site().tables.rows(ALERT_MARKS, "SELECT * FROM data")
        assert rows is not None
        assert len(rows) == 1


ACTING = ('token = "a-token"', '[migration.origin]\nbootstrap_servers = "127.0.0.1:1"')


def logged_in(browser: Any, url: str, **options: Any) -> Tab:
    """Return a tab with a session."""
    tab = Tab(browser, url, **options)
    page = tab.open("/login")
    page.get_by_label("Token").fill("a-token")
    with page.expect_navigation():
        page.get_by_role("button", name="Open").click()
    return tab


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_page_is_for_everyone(browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    """Also on a narrow screen nothing but tables scrolls sideways, and axe finds nothing grave."""
    pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    store = DashboardStore(tmp_path / "store")
    fill(store)
    found: dict[str, list[str]] = {}

    def look(page: Any, where: str) -> None:
        too_wide = page.evaluate("document.documentElement.scrollWidth") > width
        if findings := [*grave_findings(page), *["it scrolls sideways"] * too_wide]:
            found[where] = findings

    with served(store, *ACTING) as (url, _):
        tab = logged_in(browser, url, color_scheme=scheme, viewport={"width": width, "height": 740})
        for path in (*paths(now_ms(), 1, "r1"), *form_paths()):
            look(tab.open(path), path)
        page = tab.open("/alerts")
        page.get_by_text("Acknowledge or silence").click()
        with page.expect_navigation():
            page.locator("#content details .command", has_text="alerts ack").get_by_role("button", name="Run…").click()
        look(page, "before a command")
        page.get_by_role("button", name="Carry it out on prod").click()
        page.wait_for_selector("text=Done.")
        look(page, "after a command")
        # There is no broker to look at.
        page = tab.open("/new/migration")
        for label, text in (("Topics", "orders"), ("Name", "m")):
            page.get_by_label(label, exact=True).fill(text)
        page.get_by_role("button", name="Show the migration").click()
        page.wait_for_selector("text=It cannot be carried out.", timeout=60_000)
        look(page, "what is not possible")
        tab.context.close()
    assert found == {}
    assert tab.problems == []


def test_a_form_that_was_gone_back_to_has_what_was_filled_in(browser: Any, tmp_path: Path) -> None:
    store = DashboardStore(tmp_path / "store")
    fill(store)
    with served(store, *ACTING) as (url, _):
        tab = logged_in(browser, url)
        page = tab.open("/new/migration")
        page.get_by_label("Topics").fill("orders & more,<b>")
        page.get_by_label("Name").fill("--execute")
        # What is refused is said, and stays.
        page.get_by_role("button", name="Show the migration").click()
        page.wait_for_selector("#status >> text=has a value that no option can have")
        page.reload()
        assert page.get_by_label("Topics").input_value() == "orders & more,<b>"
        page.get_by_label("Topics").fill("orders")
        page.get_by_label("Name").fill("move")
        page.get_by_label("Method").select_option("linked")
        # By the keyboard.
        page.get_by_label("Name").press("Enter")
        page.wait_for_url("**/actions/*")
        page.go_back()
        shown = [page.get_by_label(label, exact=True).input_value() for label in ("Topics", "Name", "Method", "Until")]
        assert shown == ["orders", "move", "linked", "migrated"]
        assert page.get_by_role("button", name="Show the migration").is_enabled()
        tab.context.close()
    assert tab.problems == []


def test_two_tabs_carry_the_same_out_once(browser: Any, tmp_path: Path) -> None:
    store = DashboardStore(tmp_path / "store")
    fill(store)
    with served(store, *ACTING) as (url, _):
        tab = logged_in(browser, url)
        page = tab.open("/alerts")
        page.get_by_text("Acknowledge or silence").click()
        with page.expect_navigation():
            page.locator("#content details .command", has_text="alerts ack").get_by_role("button", name="Run…").click()
        other = tab.context.new_page()
        # It gets no news of what the first tab does.
        other.route("**/events", lambda route: route.abort())
        other.goto(page.url)
        page.get_by_role("button", name="Carry it out on prod").click()
        page.wait_for_selector("text=Done.")
        other.get_by_role("button", name="Carry it out on prod").click()
        other.wait_for_selector("#status >> text=does not wait to be carried out (done)")
        tab.context.close()
    assert tab.problems == []
    assert len(store.site().tables.rows(ALERT_MARKS, "SELECT * FROM data") or ()) == 1


def test_a_moment_of_the_range_is_gone_to_by_the_keyboard(tab: Tab, store: DashboardStore) -> None:
    last_ms = now_ms() // 1000 * 1000
    page = tab.open(f"/moves?at={last_ms - 60_000}&until={last_ms}")
    bar = page.get_by_label("Moment of the range")
    bar.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    # A step is ten seconds of an hour.
    then = datetime.fromtimestamp(last_ms // 1000 - 80, timezone.utc)
    page.wait_for_selector(f"#scrub[aria-valuetext='{then:%Y-%m-%d %H:%M:%S} UTC']")
    expected = {"at": [str(last_ms - 80_000)], "until": [str(last_ms)]}
    assert query_of(page) == expected
    assert page.evaluate("document.activeElement.id") == "scrub"
    assert page.get_by_label("Moment (UTC)").input_value() == f"{then:%Y-%m-%dT%H:%M:%S}"
    # Other views and filters are of the moment that was gone to.
    page.get_by_label("Topic").fill("orders")
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()
    assert query_of(page) == {**expected, "topic": ["orders"], "span": ["3600"]}
    with page.expect_navigation():
        page.get_by_role("link", name="Health").click()
    assert query_of(page) == expected
    page.get_by_label("Moment of the range").focus()
    page.keyboard.press("End")
    page.wait_for_function(f"new URL(location).searchParams.get('at') === '{last_ms}'")


def test_a_replay_plays_to_the_end_of_its_range(tab: Tab, store: DashboardStore) -> None:
    last_ms = now_ms() // 1000 * 1000 - 30_000
    page = tab.open(f"/moves?at={last_ms - 3_600_000}&until={last_ms}")
    page.get_by_role("link", name="Play ×600").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Stop")
    page.wait_for_url(f"**/moves?at={last_ms}&until={last_ms}", timeout=30_000)
    assert page.get_by_role("link", name="Play ×600").count() == 1


def test_without_a_script_the_page_says_what_it_cannot_do(
    browser: Any, server: tuple[str, subprocess.Popen[str]]
) -> None:
    tab = Tab(browser, server[0], java_script_enabled=False)
    page = tab.open(f"/moves?at={now_ms()}")
    said = page.locator("noscript .note")
    assert said.is_visible()
    assert (said.text_content() or "").startswith("This page does not follow the ticks without JavaScript")
    assert page.locator(".headline .sentence").is_visible()
    assert not page.locator("#scrub").is_visible()
    page.get_by_role("link", name="Health").click()
    assert page.locator("td", has_text="gold/throttle_headroom").count() == 1
    tab.context.close()


HOSTILE = "<script>window.hurt = 1</script>'\"><img src=x onerror=window.hurt=1>"


def test_what_others_wrote_is_text_in_every_view(browser: Any, tmp_path: Path) -> None:
    store = DashboardStore(tmp_path / "store")
    fill(store)
    tick_ms = now_ms() + 1000
    store.replicas(new_replica(0, "never", topic=HOSTILE), tick_ms=tick_ms)
    store.rates((HOSTILE, 0, 1, 2e6, HOSTILE), tick_ms=tick_ms)
    store.migrations(progress(0, topic=HOSTILE, migration=HOSTILE, reason=HOSTILE), tick_ms=tick_ms)
    store.alerts(event("<b>", tick_ms=tick_ms, subject=HOSTILE, summary=HOSTILE, recommendation=ADVICE))
    store.deliveries({"delivery_ms": tick_ms, "answer": HOSTILE, "receiver": HOSTILE})
    run = {"run_id": HOSTILE, "by": HOSTILE, "at_ms": tick_ms, "step": "run", "subject": HOSTILE, "after": HOSTILE}
    store.journal(run)
    hostile = partition(topic=HOSTILE)
    store.throttles(status(1, Role.LEADER, 5.6, 8, hostile), status(3, Role.FOLLOWER, 12, 8, hostile), tick_ms=tick_ms)
    with served(store, *ACTING) as (url, _):
        tab = logged_in(browser, url)
        for path in (*(f"/{view.value}" for view in View), "/throttles?broker=1", f"/runs?run={quote(HOSTILE)}"):
            page = tab.open(path)
            page.evaluate(SHOW_A_FIRST_MESSAGE)
            assert page.evaluate("window.hurt") is None, path
            assert page.locator("img, main script").count() == 0, path
        assert page.get_by_text("window.hurt = 1").count() > 0
        for name in FormName:
            page = tab.open(f"/new/{name.value}?{urlencode({'topics': HOSTILE, 'topic': HOSTILE, 'of': HOSTILE})}")
            assert page.evaluate("window.hurt") is None, name
        tab.context.close()
    assert tab.problems == []


def test_the_link_of_an_alert_leads_to_its_moment_with_a_token_too(browser: Any, tmp_path: Path) -> None:
    store = DashboardStore(tmp_path / "store")
    fill(store)
    with served(store, 'token = "a-token"') as (url, _):
        moment = f"{url}/alerts?at={now_ms()}"
        tab = Tab(browser, url)
        page = tab.open(moment)
        page.get_by_label("Token").fill("a-token")
        page.get_by_role("button", name="Open").click()
        page.locator(".headline").wait_for()
        assert page.url == moment
        # A link in a message of another site comes without the cookie of the session, which is open already.
        page.goto(f"data:text/html,<a href='{moment}'>the alert</a>")
        page.get_by_text("the alert").click()
        page.locator(".headline").wait_for()
        assert page.url == moment
        tab.context.close()
        assert tab.problems == []


def query_of(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_a_form_leads_to_the_address_of_what_was_chosen(tab: Tab) -> None:
    page = tab.open("/moves?sort=name")
    page.get_by_label("Topic").fill("orders & more")
    page.get_by_label("State").select_option("never")
    page.get_by_label("Moment (UTC)").fill("2027-01-15T08:00:01")
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()
    # 1,800,000,000 s after the epoch, and one more.
    expected = {"sort": ["name"], "topic": ["orders & more"], "state": ["never"], "at": ["1800000001000"]}
    assert query_of(page) == expected
    assert page.get_by_label("Topic").input_value() == "orders & more"
    assert page.get_by_label("Moment (UTC)").input_value() == "2027-01-15T08:00:01"
    page.get_by_label("Topic").fill("")
    with page.expect_navigation():
        page.get_by_label("Topic").press("Enter")
    assert "topic" not in query_of(page)
    with page.expect_navigation():
        page.get_by_role("link", name="Back to now").click()
    assert "at" not in query_of(page)


def test_a_rate_is_tried_from_the_form(tab: Tab) -> None:
    page = tab.open("/throttles")
    page.get_by_label("What if the throttle were").fill("9 MB")
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()
    assert query_of(page) == {"rate": ["9 MB"]}
    assert "A throttle of 9.00 MB/s on every broker" in page.locator("#content").text_content()


def test_a_server_ends_quietly_under_its_pages_which_say_so(
    browser: Any, server: tuple[str, subprocess.Popen[str]], store: DashboardStore
) -> None:
    url, process = server
    tab = Tab(browser, url)
    page = tab.open("/moves")
    assert page.locator("#status").text_content() == ""
    process.send_signal(signal.SIGINT)
    # As a shell has it after Ctrl-C.
    assert exit_code(process, 10) == 130
    assert errors_of(store).read_text(encoding="utf-8").strip() == ""
    began_s = time.monotonic()
    page.wait_for_selector("#status >> text=This page has not reached its server since", timeout=20_000)
    assert time.monotonic() - began_s <= 20
    assert page.evaluate("document.body.classList.contains('lost')")
    tab.context.close()
