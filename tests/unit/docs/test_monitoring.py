"""Rules and dashboards use only metrics, labels and label values that /metrics exposes."""

from __future__ import annotations

import re
from pathlib import Path

import dashboards as shown
import promql_parser
import pytest

from headroom.schemas.alerts import AlertKind, AlertState, Severity, Verdict
from headroom.schemas.keys import Role
from headroom.schemas.metrics import METRICS, MetricSpec, MetricType
from tests.support.monitoring import (
    DASHBOARDS,
    RULE_TESTS,
    Expression,
    dashboard_expressions,
    dashboards,
    label_queries,
    read_yaml,
    rule_expressions,
    rules,
)

# Labels and metrics that Prometheus itself adds to a target.
SCRAPED = {"job", "instance"}
WORDS = {
    "role": {item.value for item in Role},
    "verdict": {item.value for item in Verdict},
    "kind": {item.value for item in AlertKind},
    "state": {item.value for item in AlertState},
    "severity": {item.value for item in Severity},
    "job": {"headroom"},
}
FILLED = {"cluster": ".*", "broker": ".*", "__rate_interval": "1m"}
# What a runbook is about besides Headroom's own kinds of alert.
RUNBOOKS = {kind.value for kind in AlertKind} | {"move_not_finishing", "headroom_silent", "undelivered_events"}


def series_names(spec: MetricSpec) -> list[str]:
    suffixes = ("_bucket", "_sum", "_count") if spec.type is MetricType.HISTOGRAM else ("",)
    return [spec.name + suffix for suffix in suffixes]


LABELS = {
    name: {*spec.labels, *SCRAPED, *({"le"} if name.endswith("_bucket") else ())}
    for spec in METRICS
    for name in series_names(spec)
} | {"up": SCRAPED}


def selectors(expr: object) -> list[promql_parser.VectorSelector]:
    found: list[promql_parser.VectorSelector] = []

    def visit(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(expr, visit)
    return found


def groupings(expr: object) -> list[tuple[object, list[str]]]:
    """Each part of an expression that groups or matches by labels, with these."""
    found: list[tuple[object, list[str]]] = []

    def visit(node: object) -> None:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            found.append((node.expr, list(node.modifier.labels)))
        elif isinstance(node, promql_parser.BinaryExpr) and node.modifier and node.modifier.matching:
            found.append((node, list(node.modifier.matching.labels)))

    promql_parser.walk(expr, visit)
    return found


def mistakes(expression: Expression) -> list[str]:
    """Names and labels in an expression that do not exist."""
    parsed = promql_parser.parse(expression.filled(**FILLED))
    wrong = [f"no metric {s.name}" for s in selectors(parsed) if s.name not in LABELS]
    if wrong:
        return wrong
    for selector in selectors(parsed):
        for matcher in selector.matchers.matchers:
            if matcher.name not in LABELS[selector.name]:
                wrong.append(f"{selector.name} has no label {matcher.name}")
            elif matcher.name in WORDS:
                wrong += [f"no {matcher.name} {word}" for word in set(matcher.value.split("|")) - WORDS[matcher.name]]
    every = [*groupings(parsed), (parsed, sorted(expression.shown))]
    for part, labels in every:
        known = set().union(*(LABELS[selector.name] for selector in selectors(part)))
        wrong += [f"nothing in {part} has a label {label}" for label in labels if label not in known]
    return wrong


EVERY = [*rule_expressions(), *dashboard_expressions()]


@pytest.mark.parametrize("expression", EVERY, ids=lambda expression: expression.where)
def test_an_expression_asks_for_metrics_and_labels_that_are_there(expression: Expression) -> None:
    assert mistakes(expression) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("headroom_throttle_bytes > 1", "no metric headroom_throttle_bytes"),
        ("rate(headroom_decision_seconds[1m])", "no metric headroom_decision_seconds"),
        ('headroom_alerts{broker="1"}', "headroom_alerts has no label broker"),
        ('headroom_verdict{verdict=~"losing|starving"}', "no verdict starving"),
        ("sum by (topic) (headroom_alerts)", "label topic"),
        ("headroom_verdict and on (topic) headroom_eta_seconds", "label topic"),
    ],
)
def test_an_unknown_metric_label_or_value_is_found(text: str, wrong: str) -> None:
    found = mistakes(Expression("", text, frozenset()))
    assert [wrong in printed for printed in found] == [True]


def test_a_text_that_shows_a_label_that_is_not_there_is_noticed() -> None:
    assert len(mistakes(Expression("", "headroom_alerts", frozenset({"cluster", "broker"})))) == 1


def test_every_metric_is_on_a_dashboard() -> None:
    asked = {s.name for e in dashboard_expressions() for s in selectors(promql_parser.parse(e.filled(**FILLED)))}
    assert [spec.name for spec in METRICS if not asked & set(series_names(spec))] == [], "show it: scripts/grafana"


def test_every_choice_is_among_the_values_of_a_label() -> None:
    assert label_queries()
    for selector, label in label_queries():
        assert mistakes(Expression(selector, selector, frozenset({label}))) == []


def test_the_dashboards_are_those_that_the_code_writes() -> None:
    written = {file: file.read_text(encoding="utf-8") for file in DASHBOARDS}
    assert written == shown.files(), "write them anew: python scripts/dashboards.py"


def test_a_move_that_never_ends_is_shown_as_never() -> None:
    panels = [panel for dashboard in dashboards() for panel in dashboard["panels"]]
    finish = [panel for panel in panels if panel["title"] == "Finished in"]
    (table,) = (panel for panel in panels if panel["title"] == "Now, by broker and role")
    (times,) = (c["properties"] for c in table["fieldConfig"]["overrides"] if c["properties"][1]["value"] == "s")
    mappings = [panel["fieldConfig"]["defaults"]["mappings"] for panel in finish] + [times[2]["value"]]
    assert [found[0]["options"]["-1"]["text"] for found in mappings] == ["never"] * 3
    expressions = [panel["targets"][0]["expr"] for panel in finish] + [table["targets"][-1]["expr"]]
    never = r"or \(-1 \* max by \(.*\) \(headroom_verdict\{.*verdict=~\"losing\|starved\"\}\)\)$"
    assert [expression for expression in expressions if not re.search(never, expression)] == []


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: dashboard["uid"])
def test_every_panel_has_a_description_and_a_unit(dashboard: dict[str, object]) -> None:
    panels = dashboard["panels"]
    assert isinstance(panels, list)
    assert [panel["title"] for panel in panels if not panel["description"]] == []
    units = {panel["fieldConfig"]["defaults"]["unit"] for panel in panels}
    assert units <= {"decbytes", "Bps", "s", "short", "none", "cps", "percentunit"}
    assert len({panel["title"] for panel in panels}) == len(panels) == len({panel["id"] for panel in panels})
    # One that covers another could not be seen.
    places = [
        (at["x"] + x, at["y"] + y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["w"])
        for y in range(at["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24


def test_every_dashboard_lets_choose_the_cluster_and_the_data_source() -> None:
    for dashboard in dashboards():
        names = {variable["name"] for variable in dashboard["templating"]["list"]}
        assert {"cluster", "datasource"} <= names
        sources = {target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel["targets"]}
        assert sources == {"${datasource}"}


def test_every_rule_has_the_annotations_that_on_call_needs() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert rule["alert"].startswith("Headroom")
        assert rule["for"]
        assert rule["labels"]["severity"] in WORDS["severity"]
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}


def test_every_rule_is_tested_to_fire_and_not_to() -> None:
    cases = [case for file in RULE_TESTS for test in read_yaml(file)["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in rules()}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == names
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == names


def test_every_runbook_is_named_by_the_kind() -> None:
    for rule in rules():
        kind, url = rule["labels"]["kind"], rule["annotations"]["runbook_url"]
        assert url == f"https://runbooks.example/docs/runbooks/{kind}.md"
        assert "{{" in kind or kind in RUNBOOKS


def test_every_runbook_that_a_rule_names_is_there() -> None:
    pages = Path(__file__).resolve().parents[3] / "docs" / "runbooks"
    assert sorted(name for name in RUNBOOKS if not (pages / f"{name}.md").exists()) == []
