"""The scripts of the page, as far as they need no browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headroom.dashboard import security
from tests.unit.builders.dashboard_store import TICK_MS

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="scripts are run by node, which is not installed")
STATIC = Path(security.__file__).parent / "static"
# Functions of the page's script, with an age that stays the same; what is written to an element is recorded.
HARNESS = """
const source = require("fs").readFileSync(process.argv[1], "utf8");
const named = (name) => source.match(new RegExp(`^(?:async )?function ${name}\\\\(.*?^}`, "ms"))[0];
const script = ["write", "writeTimes", "readOut"].map(named).join("\\n") + "\\nreturn { writeTimes, readOut };";
const run = (isLocal) => new Function("age", "isLocal", script)(() => "2 min ago", () => isLocal);
const element = (dataset) => ({
  dataset, written: [], hasAttribute: () => false,
  get textContent() { return this.written.at(-1) ?? ""; },
  set textContent(text) { this.written.push(text); },
  get innerHTML() { return this.textContent; },
  set innerHTML(html) { this.textContent = html; },
});
const root = (ages, times) => ({ querySelectorAll: (selector) => selector === "[data-age-of]" ? ages : times });
"""


def result(script: str) -> Any:
    """Return what an expression in the place of ``RESULT`` has, in a time zone five and a half hours ahead of UTC."""
    assert NODE is not None
    command = [NODE, "-e", f"{HARNESS}\n{script}\nconsole.log(JSON.stringify(RESULT));", str(STATIC / "page.js")]
    done = subprocess.run(command, env={"TZ": "Asia/Kolkata"}, capture_output=True, text=True, check=True)
    # What is awaited is printed later.
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_a_script_can_be_read(path: Path) -> None:
    assert NODE is not None
    done = subprocess.run([NODE, "--check", str(path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_an_age_that_is_the_same_is_not_written_again() -> None:
    script = """
    const span = element({ ageOf: "1" });
    const { writeTimes } = run(false);
    for (let n = 0; n < 3; n += 1) writeTimes(root([span], []));
    const RESULT = span.written;
    """
    assert result(script) == ["2 min ago"]


@pytest.mark.parametrize(("is_local", "text"), [("false", "2027-01-15 08:00:00 UTC"), ("true", "2027-01-15 13:30:00")])
def test_times_are_written_in_utc_or_in_those_of_the_browser(is_local: str, text: str) -> None:
    script = f"""
    const time = element({{ ms: "{TICK_MS}" }});
    run({is_local}).writeTimes(root([], [time]));
    const RESULT = time.written;
    """
    assert result(script) == [text]


def test_a_sentence_is_read_out_when_its_words_change_and_not_with_each_figure() -> None:
    script = """
    const part = element({});
    const sentences = ["good: done in 55 s", "good: done in 50 s", "critical: never", "good: done in 50 s"];
    for (const sentence of sentences) run(false).readOut(part, sentence);
    const RESULT = part.written;
    """
    assert result(script) == ["good: done in 55 s", "", "critical: never", "good: done in 50 s"]


@pytest.mark.parametrize(
    ("before", "after", "is_new"),
    [
        ("Broker 12 is down: 30 replicas.", "Broker 12 is down: 29 replicas.", False),
        ("Broker 12 is down.", "Broker 13 is down.", True),
        ("Too low: broker 1 as leader.", "Too low: broker 2 as leader.", True),
        ("broker 1 as leader, broker 2 as leader", "broker 1 as leader, broker 3 as leader", True),
        ("brokers 1, 2, 13 are back", "brokers 1, 2, 14 are back", True),
        ("brokers 1, 2, 13 are back", "brokers 1, 2, 13 are back", False),
        ("2 of 10 brokers: 5.60 MB/s", "3 of 12 brokers: 12.01 MB/s", False),
        ("It copies nothing of orders-9.", "It copies nothing of orders-10.", True),
        ("It copies nothing of v2.", "It copies nothing of v3.", True),
        ("done at 08:01:00 UTC, in 55 s", "done at 09:11:10 UTC, in 4 s", False),
    ],
)
def test_another_broker_or_partition_is_another_sentence(before: str, after: str, is_new: bool) -> None:
    script = f"""
    const part = element({{}});
    for (const sentence of {json.dumps([before, after])}) run(false).readOut(part, sentence);
    const RESULT = part.written;
    """
    assert result(script) == [before, after if is_new else ""]


def test_the_script_of_the_page_stays_short() -> None:
    lines = (STATIC / "page.js").read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
    assert len(code) < 200


MOVED = """
const moved = (keys, href, events) => {
  const went = [];
  const location = { toString: () => href };
  const history = { replaceState: (state, title, url) => went.push(String(url)) };
  const input = {};
  const document = { querySelector: () => input };
  const body = { dataset: { events } };
  const source = named("moveTo") + "\\nreturn moveTo;";
  new Function("document", "body", "location", "history", source)(document, body, location, history)(keys);
  return { went, input: input.value, events: String(body.dataset.events) };
};
"""
ADDRESS = "http://127.0.0.1:8600/moves?cluster=b&topic=t&at=1"


def test_a_moment_that_is_gone_to_is_in_the_address_and_in_that_of_the_stream() -> None:
    keys = json.dumps({"at": TICK_MS, "until": TICK_MS + 60_000})
    script = f'{MOVED}const RESULT = moved({keys}, "{ADDRESS}&play=60", "/events/moves?at=1&play=60");'
    then = f"at={TICK_MS}&play=60&until={TICK_MS + 60_000}"
    assert result(script) == {
        "went": [f"http://127.0.0.1:8600/moves?cluster=b&topic=t&{then}"],
        "input": "2027-01-15T08:00:00",
        "events": f"http://127.0.0.1:8600/events/moves?{then}",
    }


# The whole script in a page without parts, whose streams, timers and clock the test has in hand.
PAGE = """
const page = (events) => {
  let nowMs = 0, isLost = false, went = null;
  const streams = [], timers = [], ticks = [], handlers = {};
  class EventSource {
    constructor(url) { this.url = String(url); this.isOpen = true; streams.push(this); }
    addEventListener() {}
    close() { this.isOpen = false; }
  }
  class Clock extends Date { static now() { return nowMs; } }
  const nodes = { status: { textContent: "" } };
  const document = {
    body: { dataset: { events, nowMs: "0" }, classList: { toggle: (name, isOn) => { isLost = isOn; } } },
    hidden: false,
    getElementById: (id) => nodes[id] ?? null,
    querySelector: () => ({}),
    querySelectorAll: () => [],
    addEventListener: (name, handler) => { handlers[name] = handler; },
  };
  const href = "http://127.0.0.1:8600/moves?at=1&play=60";
  const given = {
    document, EventSource, Date: Clock, setTimeout: (act) => timers.push(act), setInterval: (act) => ticks.push(act),
    addEventListener: () => {}, history: { replaceState: () => {} }, clearTimeout: (n) => { timers[n - 1] = () => {}; },
    location: { href, toString: () => href, assign: (url) => { went = url; } },
  };
  new Function(...Object.keys(given), source)(...Object.values(given));
  return {
    open: () => streams.filter((one) => one.isOpen).map((one) => one.url),
    hide: (isHidden) => { document.hidden = isHidden; handlers.visibilitychange(); },
    isLostAfter: (ms) => { nowMs += ms; for (const tick of ticks) tick(); return isLost; },
    get: (message) => streams.at(-1).onmessage({ data: JSON.stringify({ now_ms: 0, regions: {}, ...message }) }),
    fail: () => streams.at(-1).onerror(),
    scrub: (value, max) => handlers.input({ target: { id: "scrub", value, max } }),
    went: () => went,
    wait: () => { for (const act of timers.splice(0)) act(); },
  };
};
"""


@pytest.mark.parametrize(("is_pressed", "shown"), [("false", ["c"]), ("true", [])])
def test_a_selection_that_is_left_behind_does_not_keep_a_headline_of_then(is_pressed: str, shown: list[str]) -> None:
    """Copy selects the command where there is no clipboard, and nobody clears that."""
    script = f"""
    let nowMs = 0;
    const shown = [];
    const part = {{
      id: "headline", contains: () => true, querySelector: () => {is_pressed}, querySelectorAll: () => [],
      set innerHTML(html) {{ shown.push(html); }},
    }};
    const given = {{
      document: {{ getElementById: () => part, activeElement: null }}, Date: {{ now: () => nowMs }},
      getSelection: () => ({{ isCollapsed: false, anchorNode: part }}), waiting: new Map(), LATE_MS: 15000,
      pathTo: () => null, writeTimes: () => {{}}, writeAnswers: () => {{}},
    }};
    const both = `${{named("replace")}}\n${{named("show")}}\nreturn show;`;
    const show = new Function(...Object.keys(given), both)(...Object.values(given));
    for (const [ms, headline] of [[0, "a"], [9000, "b"], [15000, "c"]]) {{
      nowMs = ms;
      show({{ headline }});
    }}
    const before = [...shown];
    nowMs = 15001;
    show({{}});
    const RESULT = [before, shown];
    """
    assert result(script) == [[], shown]


def test_only_the_page_that_is_seen_has_a_stream() -> None:
    """Browsers open six connections to a host; there are seven tabs."""
    script = """
    const tabs = Array.from({ length: 7 }, () => page("/events/moves"));
    for (const tab of tabs.slice(0, 6)) tab.hide(true);
    const before = tabs.map((tab) => tab.open().length);
    tabs[6].hide(true);
    tabs[0].hide(false);
    const RESULT = [before, tabs.map((tab) => tab.open().length)];
    """
    assert result(f"{PAGE}{script}") == [[0, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0]]


def test_a_page_that_nobody_saw_for_an_hour_has_not_lost_its_server() -> None:
    script = """
    const tab = page("/events/moves");
    tab.hide(true);
    const lost = [tab.isLostAfter(3600000)];
    tab.hide(false);
    lost.push(tab.isLostAfter(0), tab.isLostAfter(15000), tab.isLostAfter(1));
    tab.get({});
    const RESULT = [...lost, tab.isLostAfter(0)];
    """
    assert result(f"{PAGE}{script}") == [False, False, False, True, False]


def test_a_replay_whose_stream_breaks_goes_on_from_where_it_was() -> None:
    moment = json.dumps({"at": TICK_MS})
    script = f"""
    const tab = page("/events/moves?at=1&play=60");
    const open = [tab.open()];
    tab.get({moment});
    tab.fail();
    open.push(tab.open());
    tab.wait();
    open.push(tab.open());
    tab.hide(true);
    tab.hide(false);
    const RESULT = [...open, tab.open()];
    """
    then = [f"http://127.0.0.1:8600/events/moves?at={TICK_MS}&play=60"]
    assert result(f"{PAGE}{script}") == [["/events/moves?at=1&play=60"], [], then, then]


def test_a_replay_that_has_come_to_its_end_is_another_page() -> None:
    script = """
    const tab = page("/events/moves?at=1&play=60");
    const before = tab.went();
    tab.get({ goes_to: "/moves?at=2" });
    const RESULT = [before, tab.went()];
    """
    assert result(f"{PAGE}{script}") == [None, "/moves?at=2"]


def test_the_bar_leads_to_the_moment_at_which_it_rests_and_no_older_answer_moves_it_back() -> None:
    script = """
    const tab = page("/events/moves?at=1");
    tab.scrub("1800000000", "1800000060");
    const open = [tab.open()];
    tab.scrub("1800000010", "1800000060");
    open.push(tab.open());
    tab.wait();
    const RESULT = [...open, tab.open()];
    """
    then = [f"http://127.0.0.1:8600/events/moves?at={TICK_MS + 10_000}&until={TICK_MS + 60_000}"]
    assert result(f"{PAGE}{script}") == [[], [], then]


def test_a_stream_that_is_refused_is_asked_for_again_once_at_a_time() -> None:
    script = """
    const tab = page("/events/moves");
    for (let n = 0; n < 3; n += 1) { tab.fail(); tab.hide(true); tab.hide(false); tab.wait(); }
    const RESULT = tab.open();
    """
    assert result(f"{PAGE}{script}") == ["/events/moves"]


def chosen(file: str) -> Any:
    """Return what is sent or said when a form with a file of at most 10 bytes is chosen.

    Args:
        file: size and content of the file, as of an object of the script.
    """
    return result(f"""
    const dataset = {{ choose: "/new/file", cluster: "prod", mostBytes: "10", tooLarge: "At most 10 bytes." }};
    const form = {{ dataset, querySelector: () => "button" }};
    class File {{}}
    const given = Object.assign(new File(), {file});
    class FormData {{ constructor() {{ return new Map([["throttle", "50MB"], ["plan_file", given]]); }} }}
    const did = [];
    const history = {{ replaceState: (state, title, url) => did.push(url) }};
    const choose = new Function("FormData", "File", "post", "say", "history", named("choose") + "\\nreturn choose;")(
      FormData, File, (...content) => did.push(content), (text) => did.push(text), history);
    choose(form).catch(() => did.push("nothing is said")).then(() => console.log(JSON.stringify(did)));
    const RESULT = null;
    """)


def test_a_file_of_a_form_is_sent_as_its_text() -> None:
    values = {"throttle": "50MB", "plan_file": "{}"}
    sent = ["button", "/new/file", {"cluster": "prod", "values": values}]
    # The address has all but the plan.
    assert chosen('{ size: 10, text: async () => "{}" }') == ["?cluster=prod&throttle=50MB", sent]


def test_a_file_that_was_changed_since_it_was_chosen_is_said() -> None:
    changed = '{ size: 2, text: async () => { throw new Error("NotReadableError"); } }'
    assert chosen(changed) == ["The file cannot be read any more: choose it again."]


def test_a_file_that_is_too_large_is_neither_read_nor_sent() -> None:
    assert chosen('{ size: 11, text: async () => { throw new Error("it is read"); } }') == ["At most 10 bytes."]
