"""What a real Alertmanager makes of what it is told.

The program is the one on the PATH, or Debian's, fetched into .tools once.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fixtures.prometheus_install import ToolNotFound, alertmanager
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receivers.alertmanager import AlertmanagerReceiver
from headroom.schemas.config import AlertmanagerSettings
from tests.integration.support import exit_code, wait_until
from tests.support.ports import own_port
from tests.unit.fakes.receivers import event

CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two instances of a highly available set."""
    try:
        words = alertmanager()
    except ToolNotFound as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("alertmanager")
    (folder / "alertmanager.yml").write_text(CONFIG)
    with ExitStack() as stack:
        # Another program may take a port that was free.
        urls = next(filter(None, (start_pair(words, folder, stack) for _ in range(3))), None)
        assert urls is not None, (folder / "0.log").read_text()[-1000:] + (folder / "1.log").read_text()[-1000:]
        yield urls


def start_pair(words: list[str], folder: Path, stack: ExitStack) -> list[str] | None:
    """Start two instances until the end of the stack, and return their addresses; None if one has ended by itself."""
    web, gossip = [own_port(), own_port()], [own_port(), own_port()]
    running = []
    for number in range(2):
        options = [
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / str(number)}",
            f"--web.listen-address=127.0.0.1:{web[number]}",
            f"--cluster.listen-address=127.0.0.1:{gossip[number]}",
            f"--cluster.peer=127.0.0.1:{gossip[1 - number]}",
        ]
        with (folder / f"{number}.log").open("a") as log:
            running.append(subprocess.Popen([*words, *options], stdout=log, stderr=subprocess.STDOUT))
        stack.callback(end, running[-1])
    urls = [f"http://127.0.0.1:{port}" for port in web]

    def codes() -> list[int | None]:
        return [process.poll() for process in running]

    wait_until(lambda: all(map(ready, urls)) or codes() != [None, None], 30, "alertmanager", codes)
    return urls if codes() == [None, None] else None


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    exit_code(process, 10)


def ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def active_alerts(url: str) -> dict[str, dict[str, Any]]:
    """Return the firing alerts of an instance, by severity."""
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=30) as answer:
        return {alert["labels"]["severity"]: alert for alert in json.load(answer)}


def become(url: str, wanted: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    held: dict[str, dict[str, Any]] = {}

    def is_wanted() -> bool:
        nonlocal held
        held = active_alerts(url)
        return wanted(held)

    wait_until(is_wanted, 30, "what alertmanager holds", lambda: held)
    return held


def test_both_instances_have_the_alert_at_its_severity_until_its_end(pair: list[str]) -> None:
    receiver = AlertmanagerReceiver(
        AlertmanagerSettings(",".join(pair), resend_s=60, timeout_s=5),
        lambda: None,
        Links("", "http://runbooks/{kind}"),
        now_ms,
    )
    began_ms = now_ms() - 5000
    before = receiver.deliver(event(severity="warning", tick_ms=began_ms), "", False).reference
    for url in pair:
        held = become(url, lambda found: set(found) == {"warning"})["warning"]
        assert held["labels"]["alertname"] == "throttle_below_leader_write"
        assert held["labels"]["subject"] == "broker 2 as leader"
        assert held["annotations"]["runbook_url"] == "http://runbooks/throttle_below_leader_write"
        assert held["status"]["state"] in ("active", "unprocessed")
    before = receiver.deliver(event(tick_ms=began_ms + 2000), before, False).reference
    for url in pair:
        become(url, lambda found: set(found) == {"critical"})
    # Sent again, as after a restart of Headroom, it is still one alert.
    receiver.resend()
    assert set(active_alerts(pair[0])) == {"critical"}
    receiver.deliver(event(state="resolved", tick_ms=now_ms() - 500), before, False)
    for url in pair:
        become(url, lambda found: not found)
