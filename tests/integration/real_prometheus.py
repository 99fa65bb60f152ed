"""A real Prometheus for tests with the shipped rules, and queries to it."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.fixtures.prometheus_install import ToolNotFound, tool
from tests.integration.support import exit_code, wait_until
from tests.support import monitoring
from tests.support.ports import own_port

# A rate takes two samples, and the tick that is told between them.
SCRAPES = 4
DEADLINE_S = 30.0


def path(name: str) -> Path:
    """Return the path of a program, or skip the test for the reason why it cannot be had."""
    try:
        return tool(name)
    except ToolNotFound as reason:
        pytest.skip(str(reason))


def wait(condition: Callable[[], Any], what: str) -> Any:
    """Return what the condition returns as soon as that is true; until it answers, it is not."""

    def looked() -> Any:
        with suppress(OSError):
            return condition()

    return wait_until(looked, DEADLINE_S, what)


@contextmanager
def prometheus(target: str, folder: Path) -> Iterator[str]:
    """Yield the address of a Prometheus that has scraped a few times, with the shipped rules, and ends afterwards."""
    settings = monitoring.read_yaml(monitoring.PROMETHEUS)
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings["rule_files"] = [str(monitoring.RULES)]
    del settings["alerting"]
    job = next(job for job in settings["scrape_configs"] if job["job_name"] == "headroom")
    job["static_configs"][0]["targets"] = [target.removeprefix("http://")]
    settings["scrape_configs"] = [job]
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    listen = f"127.0.0.1:{own_port()}"
    options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={listen}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([path("prometheus"), *options], stdout=log, stderr=subprocess.STDOUT)
    try:
        url = f"http://{listen}"
        few = f'count_over_time(headroom_build_info{{job="headroom"}}[1m]) >= {SCRAPES}'
        wait(lambda: query(url, few), f"{SCRAPES} scrapes; see {folder / 'prometheus.log'}")
        yield url
    finally:
        process.terminate()
        exit_code(process, 20)


def ask(url: str, **parameters: str) -> Any:
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
        shown = json.load(answer)
    assert shown["status"] == "success"
    return shown["data"]


def query(url: str, text: str) -> list[dict[str, Any]]:
    return ask(f"{url}/api/v1/query", query=text)["result"]
