"""The group reassign: errors of estimates, differences of throttles, and figures over records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.reassign import cases
from benchmarks.groups.reassign.arithmetic import error_ratio, run_average_errors
from benchmarks.groups.reassign.checked_journal import CheckedJournal
from benchmarks.groups.reassign.group import figures
from benchmarks.groups.reassign.kills import AFTER, BEFORE, CHAINS
from benchmarks.groups.reassign.switches import RUNS, SWITCHES, THROTTLE_BYTES_PER_S, required_bytes_per_s
from benchmarks.groups.reassign.throttle_state import ThrottleValues, difference
from headroom.planning.reassignments.run.journal import JournalRow
from headroom.schemas.config import ClusterSettings, Settings
from headroom.streaming.tables.journal import ActionJournal

NOTHING: dict[str, list[dict[str, Any]]] = {part: [] for part in ("moves", "batched", "smallest", "switches", "kills")}


def values(**records: list[dict[str, Any]]) -> dict[str, tuple[Any, int]]:
    return {figure.name: (figure.value, figure.n) for figure in figures({**NOTHING, **records})}


def test_an_error_is_a_share_of_the_estimate() -> None:
    assert error_ratio(20.0, 25.0) == pytest.approx(0.25)
    assert error_ratio(20.0, 15.0) == pytest.approx(0.25)


def test_the_average_of_the_run_is_asked_at_each_share() -> None:
    """40 of 100 bytes after 4 s: 6 s are left, really 12 - 4 = 8 s: error 8/6 - 1. 80 after 8 s: 2 s, really 4 s."""
    samples = [(0.0, 0.0, 100.0), (4.0, 40.0, 100.0), (8.0, 80.0, 100.0)]
    errors = run_average_errors(samples, 12.0)
    assert errors == pytest.approx({"25": 1 / 3, "50": 1.0, "75": 1.0})
    # Copied within one interval of samples.
    assert run_average_errors([(0.0, 0.0, 100.0)], 1.0) == {}
    assert run_average_errors([(1.0, 100.0, 100.0)], 1.5) == {}


def test_figures_of_moves() -> None:
    moves = [
        {"predicted_s": 10.0, "range_s": [9.0, 11.0], "real_s": 11.0, "samples": [[5.0, 50, 100]]},
        {"predicted_s": 10.0, "range_s": [9.0, 11.0], "real_s": 7.0, "samples": [[3.5, 50, 100]]},
        {"predicted_s": 10.0, "range_s": [8.0, 13.0], "real_s": 12.0, "samples": []},
    ]
    found = values(moves=moves)
    assert found["plan_error_ratio_median"] == (pytest.approx(0.2), 3)
    assert found["plan_error_ratio_max"] == (pytest.approx(0.3), 3)
    assert found["plan_range_hit_ratio"] == (pytest.approx(2 / 3), 3)
    # 5 s are left by the average, really 6; 3.5 s are left, really 3.5.
    assert found["run_average_error_ratio_median_50"] == (pytest.approx(0.1), 2)
    assert "run_average_error_ratio_median_75" not in found


def test_figures_of_batches_throttles_and_switches() -> None:
    found = values(
        batched=[
            {"predicted_s": [10.0, 10.0, 20.0], "real_s": [12.0, 8.0, 30.0], "clean_s": 2.0},
            {"predicted_s": [5.0, 5.0, 5.0], "real_s": [5.0, 5.0, 5.0], "clean_s": 4.0},
        ],
        smallest=[{"recommended_bytes_per_s": 6.0, "smallest_bytes_per_s": 5.0}],
        switches=[{"seconds": [2.0, 4.0, 9.0], "foreign": 1, "foreign_changed": 0, "left_behind": 0}],
    )
    # 50 s instead of 40 s.
    assert found["batched_error_ratio_max"] == (pytest.approx(0.25), 2)
    assert found["plan_recommended_over_smallest_ratio_max"] == (pytest.approx(1.2), 1)
    assert (found["switch_to_throttle_s_median"], found["switch_to_throttle_s_max"]) == ((4.0, 3), (9.0, 3))
    assert found["reassign_clean_s_max"] == (4.0, 2)


def test_figures_of_kills_are_sums() -> None:
    killed = {"kills": ["a", "b"], "left_behind": 1, "unfinished": 0, "foreign": 6, "foreign_changed": 0}
    found = values(
        kills=[{**killed, "clean_s": None}, {**killed, "unfinished": 2, "clean_s": 3.0}],
        switches=[{"seconds": [1.0], "foreign": 1, "foreign_changed": 1, "left_behind": 0}],
    )
    assert found["reassign_kill_left_behind"] == (2, 4)
    assert found["reassign_kill_unfinished"] == (2, 4)
    assert found["reassign_foreign_changed"] == (1, 13)
    assert found["reassign_clean_s_max"] == (3.0, 1)
    assert values() == {}


def test_figures_of_traces_are_sums_over_the_records_that_have_them() -> None:
    killed = {"kills": ["a"], "left_behind": 0, "unfinished": 0, "foreign": 6, "foreign_changed": 0, "clean_s": None}
    switched = {"seconds": [1.0], "foreign": 1, "foreign_changed": 0, "left_behind": 0}
    batched = {"predicted_s": [5.0], "real_s": [5.0], "clean_s": None}
    found = values(
        kills=[killed, {**killed, "traces": 1, "trace_violations": 2}],
        switches=[{**switched, "traces": 1, "trace_violations": 0}],
        batched=[{**batched, "traces": 1, "trace_violations": 1}],
    )
    assert found["reassign_traces_checked"] == (3, 3)
    assert found["reassign_trace_violations"] == (3, 3)
    assert "reassign_traces_checked" not in values(kills=[killed])


def test_a_check_of_the_journal_counts_what_is_new(tmp_path: Path) -> None:
    settings = Settings(cluster=ClusterSettings(name="orders"))
    # Only where the journal is, and of which cluster, is read of it.
    checked = CheckedJournal(cast(BenchCluster, SimpleNamespace(store=str(tmp_path), settings=settings)))
    lines: list[str] = []
    assert checked.check(lines.append) == {"traces": 0, "trace_violations": 0}
    begun = JournalRow("one", 1, "orders", "reassign run", "run", "intended", "plan", None, "{}", "anna@host", 1)
    ended = replace(begun, seq=2, state="done")
    # The second row is missing. The third command is no run of a plan.
    other = replace(begun, run_id="two", seq=1)
    ActionJournal(str(tmp_path)).append([begun, ended, other, replace(other, seq=3, state="done")])
    ActionJournal(str(tmp_path)).append([replace(begun, run_id="three", command="throttle apply", step="rate")])
    assert checked.check(lines.append) == {"traces": 2, "trace_violations": 1}
    assert lines == ["row 3 of run two, run plan done: is number 3, not 2"]
    # What was there at the last check is not counted again, also if an earlier run goes on.
    ActionJournal(str(tmp_path)).append([replace(begun, run_id="four"), replace(ended, seq=3)])
    assert checked.check(lines.append) == {"traces": 1, "trace_violations": 1}
    assert lines[1:] == ["row 3 of run one, run plan done: follows 'done'"]


def test_throttle_differences_count_leftovers_and_changed_values_of_others() -> None:
    others = ThrottleValues(
        {(1, "leader"): 5, (2, "leader"): 7}, frozenset({("t", "leader", 0, 1), ("t", "leader", 0, 2)})
    )
    assert difference(others, others) == (0, 0)
    now = ThrottleValues(
        {(1, "leader"): 9, (3, "follower"): 4}, frozenset({("t", "leader", 0, 1), ("t", "follower", 1, 4)})
    )
    # Left: the rate of 3 and an entry. Changed: 5 to 9, 7 gone, an entry gone.
    assert difference(now, others) == (2, 3)
    assert len(others) == 4


def test_the_moves_are_those_that_the_figures_ask_for() -> None:
    factors = {len(moved.before) for case in cases.MOVES for moved in case.partitions}
    counts = {len(case.partitions) for case in cases.MOVES}
    assert len(cases.MOVES) >= 12
    assert (factors, min(counts), max(counts)) == ({1, 2, 3}, 1, 40)
    assert {case.busy > 0 for case in cases.MOVES} == {True, False}
    assert len(cases.BATCHED) == 3
    assert len({case.name for case in cases.MOVES}) == len(cases.MOVES)
    # At least 40 kills, even if one of six comes after the end of its run, and all of those that follow do.
    assert CHAINS * 2 * 5 / 6 >= 40
    assert BEFORE.keys() == AFTER.keys()


def test_every_switch_makes_a_throttle_too_low_that_the_run_raised_with_its_margin() -> None:
    margin_ratio, throttle = 1.2, THROTTLE_BYTES_PER_S
    assert RUNS * SWITCHES >= 10
    assert required_bytes_per_s(0) < throttle
    for switched in range(1, SWITCHES + 1):
        # By a tenth at least, because measured write rates are off by some percent.
        assert required_bytes_per_s(switched) > throttle * 1.1
        throttle = required_bytes_per_s(switched) * margin_ratio
