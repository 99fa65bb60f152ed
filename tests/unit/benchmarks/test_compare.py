"""Comparison of figures with the ones before: direction, noise of repeated runs, other machines."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import compare as module
from benchmarks.compare import DEFAULT_NOISE_RATIO, Comparison, FigureChange, compare, main, measurements, noise

HERE, ELSEWHERE = "2 cores (A), 25 GB, Linux 6", "4 cores (B), 25 GB, Linux 6"


def result(name: str, value: float, commit: str, day: int, unit: str = "s", machine: str = HERE) -> dict[str, Any]:
    date = f"2026-11-{day:02d}T00:00:00Z"
    return {
        "name": name, "value": value, "unit": unit, "n": 3, "command": "", "machine": machine, "date": date,
        "commit": commit,
    }  # fmt: skip


def compared(*results: dict[str, Any]) -> Comparison:
    """Return the comparison of one figure, of measurements from the oldest to the newest."""
    ((name, history),) = measurements([[one] for one in results]).items()
    return compare(name, history)


@pytest.mark.parametrize(
    ("name", "unit", "before", "now", "change"),
    [
        ("path_s", "s", 1.0, 1.2, FigureChange.WORSE),
        ("path_s", "s", 1.0, 0.8, FigureChange.BETTER),
        ("path_s", "s", 1.0, 1.05, FigureChange.SAME),
        ("throughput", "rows/s", 100.0, 80.0, FigureChange.WORSE),
        # The goals know the direction of ratios.
        ("alert_recall", "ratio", 1.0, 0.8, FigureChange.WORSE),
        ("finish_error_ratio_median", "ratio", 0.05, 0.08, FigureChange.WORSE),
        ("some_ratio", "ratio", 0.5, 0.8, FigureChange.OTHER),
        # One lost event after none is no noise.
        ("lost", "events", 0.0, 1.0, FigureChange.WORSE),
        ("lost", "events", 0.0, 0.0, FigureChange.SAME),
    ],
)
def test_a_change_beyond_noise_is_better_or_worse(
    name: str, unit: str, before: float, now: float, change: FigureChange
) -> None:
    found = compared(result(name, before, "a", 1, unit), result(name, now, "b", 2, unit))
    assert found.change is change
    assert (found.noise_ratio, found.repeated) == (DEFAULT_NOISE_RATIO, 0)


def test_the_noise_is_the_spread_of_repeated_runs_of_the_same_code() -> None:
    runs = [result("path_s", 1.0, "a", 1), result("path_s", 1.4, "a", 2)]
    assert compared(*runs, result("path_s", 1.8, "b", 3)).change is FigureChange.SAME
    assert compared(*runs, result("path_s", 2.0, "b", 3)).change is FigureChange.WORSE
    (history,) = measurements([runs]).values()
    assert noise(history) == (pytest.approx(0.4), 2)


def test_the_figure_before_is_of_other_code() -> None:
    found = compared(result("path_s", 1.0, "a", 1), result("path_s", 2.0, "b", 2), result("path_s", 2.1, "b", 3))
    assert found.before is not None
    assert (found.before.commit, found.now.value) == ("a", 2.1)
    assert compared(result("path_s", 1.0, "a", 1)).change is FigureChange.NEW


def test_times_of_another_processor_are_not_compared_but_counts_are() -> None:
    assert compared(result("path_s", 1, "a", 1), result("path_s", 9, "b", 2, machine=ELSEWHERE)).change is (
        FigureChange.MACHINE
    )
    lost = compared(result("lost", 0, "a", 1, "events"), result("lost", 9, "b", 2, "events", ELSEWHERE))
    assert lost.change is FigureChange.WORSE


def test_a_measurement_that_many_versions_of_the_file_have_counts_once() -> None:
    one = result("path_s", 1.0, "a", 1)
    assert len(measurements([[one], [one], [one]])["path_s"]) == 1


def test_the_command_exits_with_1_if_a_figure_got_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = [result("path_s", 1.0, "a", 1)], [result("path_s", 2.0, "b", 2)]
    monkeypatch.setattr(module, "read", lambda: now)
    monkeypatch.setattr(module, "stored_versions", lambda: [now, before])
    ran = CliRunner().invoke(main, [])
    assert ran.exit_code == 1
    assert "Worse by more than noise: path_s" in ran.output
    monkeypatch.setattr(module, "stored_versions", lambda: [now])
    assert CliRunner().invoke(main, ["--format", "json", "--all"]).exit_code == 0
