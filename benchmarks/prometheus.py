"""A real Prometheus that evaluates the stock rules, and when their alerts fired."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import yaml

from benchmarks.prometheus_tools import NotThere, tool
from cluster.embedded.layout import free_ports
from schemas.errors import HeadroomError

STOCK = Path(__file__).resolve().parent / "stock"
RULES = STOCK / "rules.yml"
EXPORTER_CONFIG = STOCK / "jmx_exporter.yml"
# Stock set-ups scrape and evaluate every 30 or 60 s, which only makes them later.
INTERVAL_S = 5.0
# An alert that is gone for one evaluation, because that one was late, is the same alert.
_SAME_ALERT_S = 2.5 * INTERVAL_S
_REMEDY = "Install Debian's package prometheus, or put Prometheus 2.42 or newer on the PATH."
_HOST = "127.0.0.1"
_READY_S = 60.0
_STOP_S = 10.0
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Firing:
    """One alert of a stock rule, from when it fired.

    Attributes:
        group: of rules: who they come from.
        name: of the alert.
        about: its other labels that tell it from its like.
        severity: as its rule has it.
        from_s: when an evaluation first had it firing, epoch seconds.
        until_s: when the last one had.
    """

    group: str
    name: str
    about: str
    severity: str
    from_s: float
    until_s: float


def rules(for_ratio: float = 1.0, path: Path = RULES) -> dict[str, Any]:
    """Return the rules of a file as Prometheus reads them, each with its group as a label.

    Args:
        for_ratio: by this the times are multiplied for which a condition must hold.
        path: of the file.
    """
    known: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for group in known["groups"]:
        for rule in group["rules"]:
            rule["labels"] |= {"origin": group["name"]}
            rule["for"] = f"{round(duration_s(rule['for']) * for_ratio * 1000)}ms"
    return known


def duration_s(text: str) -> float:
    """Return the seconds of a duration as Prometheus writes it, of one unit.

    Raises:
        ValueError: it is none.
    """
    number = text.rstrip("msh")
    return float(number) * _UNITS_S[text[len(number) :]]


class Prometheus:
    """A Prometheus that scrapes brokers and evaluates the stock rules, from its first scrape of all to the end.

    Args:
        folder: of its configuration, data and log.
        targets: ``host:port`` of each broker's jmx_exporter.
        for_ratio: by this the times are multiplied for which a condition must hold.
    """

    def __init__(self, folder: Path, targets: Sequence[str], for_ratio: float = 1.0) -> None:
        self._folder = folder
        self._targets = targets
        self._for_ratio = for_ratio
        self._port = free_ports(1)[1].client

    def __enter__(self) -> Prometheus:
        """Return this, once it has scraped every target.

        Raises:
            HeadroomError: it does not run, or a target does not answer.
        """
        self._folder.mkdir(parents=True)
        self._started_s = time.monotonic()
        try:
            command = [str(tool("prometheus")), *self._options()]
        except NotThere as reason:
            raise HeadroomError("prometheus", str(reason), _REMEDY) from reason
        with (self._folder / "prometheus.log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._await_scrapes()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self._stop()

    def firings(self) -> list[Firing]:
        """Return the alerts that have fired since its start, in the order in which they began.

        Raises:
            HeadroomError: it does not answer.
        """
        length_s = max(1, round(time.monotonic() - self._started_s))
        found = self._query(f'ALERTS{{alertstate="firing"}}[{length_s}s]')
        alerts = [alert for series in found for alert in firings_of(series["metric"], series["values"])]
        return sorted(alerts, key=lambda alert: alert.from_s)

    def _options(self) -> list[str]:
        rules_file = self._folder / "rules.yml"
        rules_file.write_text(yaml.safe_dump(rules(self._for_ratio)), encoding="utf-8")
        every = f"{INTERVAL_S:g}s"
        scrape = {"job_name": "kafka", "static_configs": [{"targets": list(self._targets)}]}
        scrape["static_configs"][0]["labels"] = {"cluster": "embedded"}  # type: ignore[index]
        config = {
            "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
            "rule_files": [str(rules_file)],
            "scrape_configs": [scrape],
        }
        config_file = self._folder / "prometheus.yml"
        config_file.write_text(yaml.safe_dump(config), encoding="utf-8")
        return [
            f"--config.file={config_file}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={_HOST}:{self._port}",
        ]

    def _await_scrapes(self) -> None:
        give_up = time.monotonic() + _READY_S
        while True:
            if self._process.poll() is not None:
                raise HeadroomError("prometheus", f"ended: {self._log_end()}", _REMEDY)
            with suppress(HeadroomError):
                if len([up for up in self._query("up") if up["value"][1] == "1"]) == len(self._targets):
                    return
            if time.monotonic() > give_up:
                raise HeadroomError("prometheus", f"did not scrape all of {', '.join(self._targets)}", self._log_end())
            time.sleep(0.5)

    def _query(self, expression: str) -> list[dict[str, Any]]:
        url = f"http://{_HOST}:{self._port}/api/v1/query?{urlencode({'query': expression})}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except (OSError, ValueError, KeyError) as error:
            told = f"Its log ends: {self._log_end()}"
            raise HeadroomError("prometheus", f"did not answer ({error})", told) from error
        return result

    def _log_end(self) -> str:
        log = (self._folder / "prometheus.log").read_text(encoding="utf-8", errors="replace")
        return " | ".join(log.strip().splitlines()[-2:])

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def firings_of(labels: Mapping[str, str], samples: Sequence[tuple[float, str]]) -> list[Firing]:
    """Return the alerts that one series of ``ALERTS`` tells of: one for each stretch of evaluations without a break.

    Args:
        labels: of the series.
        samples: (epoch seconds, value), of each evaluation at which the alert fired.
    """
    hidden = ("__name__", "alertname", "alertstate", "severity", "origin", "cluster", "job")
    about = ", ".join(f"{name}={value}" for name, value in sorted(labels.items()) if name not in hidden)
    stretches: list[list[float]] = []
    for at_s, _ in samples:
        if stretches and at_s - stretches[-1][1] <= _SAME_ALERT_S:
            stretches[-1][1] = at_s
        else:
            stretches.append([at_s, at_s])
    return [
        Firing(labels["origin"], labels["alertname"], about, labels["severity"], from_s, until_s)
        for from_s, until_s in stretches
    ]
