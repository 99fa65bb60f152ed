"""Precision and recall, computed by hand; the order of the faults; and the syntax of the stock rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.fixtures import prometheus_install as prometheus_tools
from benchmarks.fixtures.prometheus import EXPORTER_CONFIG, INTERVAL_S, RULES, Prometheus, duration_s, firings_of, rules
from benchmarks.groups.precision.faults import ANY, Fault, schedule
from benchmarks.groups.precision.scoring import (
    GRACE_S,
    HEADROOM,
    AlertPage,
    Window,
    figures,
    first_detection,
    grouped,
    is_true,
)
from headroom.schemas.errors import HeadroomError

LEADER = "throttle_below_leader_write"


def window(
    from_s: float = 100, right_s: float = 200, expects: Mapping[str, str] | None = None, of_cluster: bool = True
) -> Window:
    wanted = {LEADER: "broker 1 as leader"} if expects is None else expects
    return Window("fault", wanted, frozenset({"throttle_below_inbound"}), of_cluster, from_s, right_s)


def page(
    at_s: float,
    name: str = LEADER,
    subject: str = "broker 1 as leader",
    tool: str = HEADROOM,
    severity: str = "warning",
) -> AlertPage:
    return AlertPage(tool, name, subject, severity, at_s)


def values(tool: str, windows: list[Window], pages: list[AlertPage]) -> dict[str, tuple[float, int]]:
    return {figure.name: (figure.value, figure.n) for figure in figures(tool, "x", windows, pages)}


@pytest.mark.parametrize(
    ("fired", "right", "detected"),
    [
        (page(100), True, True),
        (page(200 + GRACE_S), True, True),
        (page(99.9), False, False),
        (page(200.1 + GRACE_S), False, False),
        # The right kind, but another broker: true, and no detection.
        (page(150, subject="broker 2 as leader"), True, False),
        (page(150, name="throttle_below_inbound"), True, False),
        (page(150, name="no_data"), False, False),
        # A stock rule names no broker.
        (page(150, name="UnderReplicatedPartitions", tool="strimzi"), True, True),
        (page(99, name="UnderReplicatedPartitions", tool="strimzi"), False, False),
    ],
)
def test_a_page_is_true_in_the_time_of_a_fault_that_it_is_about(fired: AlertPage, right: bool, detected: bool) -> None:
    assert is_true(fired, [window()]) is right
    assert (first_detection(fired.tool, window(), [fired]) is not None) is detected


def test_any_subject_detects_a_fault_without_one() -> None:
    fault = window(expects={"throttle_left_behind": ANY})
    assert fault.is_detected_by(page(150, name="throttle_left_behind", subject="topic orders"))


def test_precision_is_of_pages_recall_of_faults_and_delay_the_median_of_first_ones() -> None:
    faults = [window(100, 200), window(300, 400), window(500, 600)]
    # Two of three detected, after 10 and 40 s, the second twice; one of four alerts is false.
    pages = [page(110), page(350), page(340), page(50)]
    assert values(HEADROOM, faults, pages) == {
        "x_precision": (0.75, 4),
        "x_recall": (pytest.approx(2 / 3), 3),
        "x_delay_s_median": (25.0, 2),
    }


def test_an_info_does_not_page_but_detects_a_fault() -> None:
    fired = [page(110, severity="info"), page(50, severity="info")]
    assert values(HEADROOM, [window()], fired) == {
        "x_precision": (1.0, 0),
        "x_recall": (1.0, 1),
        "x_delay_s_median": (10.0, 1),
    }


def test_a_tool_without_alerts_has_precision_1_and_recall_0() -> None:
    assert values("strimzi", [window()], [page(110)]) == {"x_precision": (1.0, 0), "x_recall": (0.0, 1)}


def test_alerts_of_one_rule_that_begin_together_count_once() -> None:
    fired = [AlertPage("strimzi", name, about, "warning", at_s, at_s + 5) for at_s, name, about in _FIRED]
    assert [(call.at_s, call.until_s, call.name, call.subject) for call in grouped(fired)] == [
        (100, 120, "Down", "b1; b2"),
        (110, 115, "Other", "b1"),
        (131, 136, "Down", "b3"),
    ]


_FIRED = [(100, "Down", "b1"), (110, "Other", "b1"), (115, "Down", "b2"), (131, "Down", "b3")]


def test_a_fault_of_headrooms_own_counts_for_headroom_alone() -> None:
    own = window(expects={"no_data": "ticks"}, of_cluster=False)
    assert values("strimzi", [own], []) == {"x_precision": (1.0, 0)}
    assert values(HEADROOM, [own], [])["x_recall"] == (0.0, 1)


def test_the_schedule_is_always_the_same_and_a_short_one_is_the_beginning_of_a_long_one() -> None:
    assert schedule(40) == schedule(40)
    assert schedule(11) == schedule(40)[:11]
    assert len(schedule(11)) == 11


def test_every_class_comes_once_before_any_comes_again() -> None:
    names = [fault.name for fault in schedule(24)]
    assert all(len(set(names[start : start + 8])) == 8 for start in (0, 8, 16))


@pytest.mark.parametrize("fault", schedule(16), ids=lambda fault: fault.name)
def test_a_fault_has_brokers_of_its_own_and_expects_an_alert(fault: Fault) -> None:
    assert sorted((fault.a, fault.b, fault.c, fault.d)) == [1, 2, 3, 4]
    assert fault.expects
    assert not set(fault.expects) & fault.also - {"under_replicated", "isr_shrink_during_move", "reassignment_stalled"}
    assert all(set(moved.before) | set(moved.after) <= {1, 2, 3, 4} for moved in fault.partitions())


def test_every_group_of_rules_has_alerts_with_all_that_is_counted() -> None:
    groups = rules()["groups"]
    assert [group["name"] for group in groups] == ["strimzi", "grafana", "confluent"]
    for group in groups:
        names = [rule["alert"] for rule in group["rules"]]
        assert len(set(names)) == len(names) > 0
        for rule in group["rules"]:
            assert rule["expr"]
            assert set(rule["labels"]) == {"severity", "origin"}
            assert duration_s(rule["for"]) > 0


def test_the_times_of_rules_are_their_own_or_shortened() -> None:
    def times_s(known: dict[str, Any]) -> list[float]:
        return [duration_s(rule["for"]) for group in known["groups"] for rule in group["rules"]]

    own = [duration_s(rule["for"]) for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert times_s(rules()) == own
    assert times_s(rules(0.1)) == pytest.approx([time_s / 10 for time_s in own])


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10), ("5m", 300), ("1h", 3600), ("1500ms", 1.5)])
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


def test_every_metric_of_the_rules_is_exported_from_an_mbean_that_is_included() -> None:
    config = yaml.safe_load(EXPORTER_CONFIG.read_text(encoding="utf-8"))
    exported = {_metric(name) for name in config["includeObjectNames"]}
    text = " ".join(rule["expr"] for group in rules()["groups"] for rule in group["rules"])
    used = {word for word in text.replace("(", " ").replace(")", " ").replace("[", " ").split() if "kafka_" in word}
    assert used == exported


def _metric(mbean: str) -> str:
    domain, _, keys = mbean.partition(":")
    named = dict(key.split("=") for key in keys.split(",") if "=" in key)
    name = named["name"]
    plain = f"{name.removesuffix('PerSec')}_total" if name.endswith("PerSec") else name
    return f"{domain.replace('.', '_')}_{named['type']}_{plain}".lower()


def test_an_alert_that_is_gone_for_more_than_a_late_evaluation_is_another_one() -> None:
    labels = {
        "__name__": "ALERTS",
        "alertname": "Down",
        "alertstate": "firing",
        "origin": "strimzi",
        "severity": "major",
    }
    samples = [(at_s, "1") for at_s in (10.0, 15.0, 25.0, 25.0 + 3 * INTERVAL_S)]
    found = firings_of({**labels, "instance": "b:1", "job": "kafka", "cluster": "embedded"}, samples)
    assert [(f.from_s, f.until_s) for f in found] == [(10.0, 25.0), (40.0, 40.0)]
    assert {(f.group, f.name, f.about, f.severity) for f in found} == {("strimzi", "Down", "instance=b:1", "major")}


def test_a_missing_prometheus_is_an_error_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_tools, "TOOLS", tmp_path / "tools")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HeadroomError, match="is not on the PATH") as raised, Prometheus(tmp_path / "data", []):
        pass
    assert "Install Debian's package prometheus" in str(raised.value)
