"""Commands of the page in tests: a program that stands for Headroom, and a client that has the token."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from headroom.dashboard.acting.actions import Actions, ChosenAction
from headroom.dashboard.acting.allowed import allowed_command
from headroom.dashboard.acting.offers import CommandOffer
from tests.unit.builders.dashboard_store import CLUSTER, TICK_MS, Client, DashboardStore
from tests.unit.dashboard.markup import Markup

TOKEN = "a-token-7f3c"
CONFIG = "orders.toml"
ORIGIN = {"origin": "http://127.0.0.1:8600"}
RAISE = "headroom throttle apply --config orders.toml --rate 9600000 --brokers 1,2 --raise-only --execute"
DEADLINE_S = 20.0
# Stands for Headroom: it notes its arguments, prints them, waits while a file is there, and ends as another file says.
PROGRAM = """
import json, os, signal, sys, time
folder = sys.argv[1]
signal.signal(signal.SIGINT, lambda *_: sys.exit(3))
with open(f"{folder}/calls", "a") as calls:
    calls.write(" ".join(sys.argv[2:]) + "\\n")
with open(f"{folder}/users", "a") as users:
    users.write(os.environ.get("HEADROOM_USER", "") + "\\n")
print("<b>one</b>\\x1b[31m", *sys.argv[2:], flush=True)
def made(option):
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None
if made("--save-result") and os.path.exists(f"{folder}/made"):
    command = f"headroom reassign run --batches-dir {made('--batches-dir')} --throttle 50000000 --execute"
    with open(made("--save-result"), "w") as result:
        json.dump({"next_commands": [command], "fingerprint": "ab-cd"}, result)
if made("--dir"):
    os.mkdir(made("--dir"))
    if os.path.exists(f"{folder}/made"):
        with open(f"{made('--dir')}/proposal.json", "w") as proposal:
            json.dump({"throttle_bytes_per_s": 50000000, "batches": [{"copied_replicas": 1}]}, proposal)
while os.path.exists(f"{folder}/wait") and "--execute" in sys.argv:
    time.sleep(0.02)
print("end", file=sys.stderr)
sys.exit(int(open(f"{folder}/code").read()) if os.path.exists(f"{folder}/code") else 0)
"""


class Program:
    """The program that stands for Headroom.

    Args:
        folder: where it notes its calls.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def command_line(self, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(self.folder), *arguments]

    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def users(self) -> list[str]:
        """Return for whom each call was made; nothing for whoever has the token."""
        file = self.folder / "users"
        return file.read_text().splitlines() if file.exists() else []

    def waits(self, waits: bool = True) -> None:
        file = self.folder / "wait"
        file.touch() if waits else file.unlink(missing_ok=True)

    def makes(self) -> None:
        """Make something that can be carried out, where that is asked for."""
        (self.folder / "made").touch()

    def ends_with(self, code: int) -> None:
        (self.folder / "code").write_text(str(code))


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.ms = TICK_MS

    def __call__(self) -> int:
        return self.ms


def offer(text: str = RAISE, cluster: str = CLUSTER) -> CommandOffer:
    command = allowed_command(text, CONFIG)
    assert command is not None
    return CommandOffer(cluster, command)


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end_s, "it did not happen in time"
        time.sleep(0.02)


def when_ended(actions: Actions, action_id: str) -> ChosenAction:
    until(lambda: not actions.read(action_id).progress.is_running)
    return actions.read(action_id)


def acting(store: DashboardStore, program: Program, clock: Clock) -> Client:
    client = Client(store.acting_app(TOKEN, clock, program.command_line))
    assert client.post("/login", json={"token": TOKEN}, headers=ORIGIN).status_code == 204
    return client


def buttons(page: httpx.Response, key: str) -> list[str]:
    found = [button.attributes[key] for button in Markup(page.text).all("button") if key in button.attributes]
    return [one for one in found if one is not None]
