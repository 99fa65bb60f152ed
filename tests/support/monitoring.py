"""Rules and dashboards in docker/ for Prometheus and Grafana, as read by tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DOCKER = Path(__file__).resolve().parents[2] / "docker"
RULES = DOCKER / "prometheus" / "rules" / "headroom.rules.yml"
RULE_TESTS = sorted((DOCKER / "prometheus" / "tests").glob("*.yml"))
PROMETHEUS = DOCKER / "prometheus" / "prometheus.yml"
ALERTMANAGER = DOCKER / "alertmanager" / "alertmanager.yml"
DASHBOARDS = sorted((DOCKER / "grafana" / "dashboards").glob("*.json"))

_VARIABLE = re.compile(r"\$(\w+)")


class Expression(NamedTuple):
    """A PromQL expression with its location, and the labels of its result that texts show."""

    where: str
    text: str
    shown: frozenset[str]

    def filled(self, **variables: str) -> str:
        """Return the expression as Grafana sends it, with each ``$name`` replaced."""
        return _VARIABLE.sub(lambda found: variables[found[1]], self.text)


def read_yaml(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    return [rule for group in read_yaml(RULES)["groups"] for rule in group["rules"]]


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in DASHBOARDS]


def rule_expressions() -> list[Expression]:
    return [
        Expression(rule["alert"], rule["expr"], frozenset(re.findall(r"\$labels\.(\w+)", json.dumps(rule))))
        for rule in rules()
    ]


def dashboard_expressions() -> list[Expression]:
    return [expression for dashboard in dashboards() for expression in _of_dashboard(dashboard)]


def _of_dashboard(dashboard: dict[str, Any]) -> Iterator[Expression]:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            shown = frozenset(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            yield Expression(f"{dashboard['uid']}: {panel['title']} {target['refId']}", target["expr"], shown)
    for annotation in dashboard["annotations"]["list"]:
        shown = frozenset(re.findall(r"{{(\w+)}}", annotation["titleFormat"]))
        yield Expression(f"{dashboard['uid']}: {annotation['name']}", annotation["expr"], shown)


def label_queries() -> list[tuple[str, str]]:
    """Return the selector and label of each variable of the dashboards."""
    every = (v for dashboard in dashboards() for v in dashboard["templating"]["list"] if v["type"] == "query")
    found = [re.fullmatch(r"label_values\((.+), (\w+)\)", v["query"]["query"]) for v in every]
    assert all(found)
    return [(match[1], match[2]) for match in found if match]
