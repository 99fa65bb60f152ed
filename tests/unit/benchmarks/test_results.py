"""The results file and the statistics of the benchmarks, computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import results
from benchmarks.fixtures.move_cases import CASES, CHANGING, SITUATIONS, MoveCase
from benchmarks.fixtures.recorded_moves import RecordedMove
from benchmarks.fixtures.synthetic.simulated_week import RETENTION
from benchmarks.groups.elections import group as elections
from benchmarks.groups.elections.latency import LatencyRun
from benchmarks.groups.elections.latency import figures as election_figures
from benchmarks.groups.finish_time import PredictedFinish, eta_figures, figures
from benchmarks.groups.memory import after_warm_up, growth_ratio_per_hour
from benchmarks.groups.table_growth import require_bounded
from benchmarks.results import Figure, Origin, merge, percentile, slope_per_s, write
from headroom.planning.elections.planner import Reason, plan_elections
from headroom.planning.finish.finish_time import Finish
from headroom.planning.quotas.load import PartitionTraffic, throttle_loads
from headroom.schemas.alerts import Verdict
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role, TopicPartition

_OLD = Origin("make bench", "old machine", "2026-01-01T00:00:00Z", "aaa")
_NEW = Origin("make bench ONLY=start", "new machine", "2026-02-02T00:00:00Z", "bbb")
_FIELDS = ["command", "commit", "date", "machine", "n", "name", "unit", "value"]


def verdicts(case: MoveCase, switched: int | None = None) -> set[Verdict]:
    """Return the verdicts under the throttle of a move, before or after the election of one preferred leader."""
    rates = {(broker, role): case.throttle_bytes_per_s for broker in range(1, 5) for role in Role}
    partitions = []
    for number, moved in enumerate(case.partitions):
        leader = moved.after[0] if number == switched else moved.before[0]
        new = frozenset(moved.after) - frozenset(moved.before)
        partitions.append(
            PartitionTraffic(
                name=TopicPartition("t", number),
                leader=leader,
                followers=tuple(sorted({*moved.before, *moved.after} - {leader})),
                in_sync=frozenset(moved.before),
                adding=new,
                leader_listed=frozenset(moved.before),
                follower_listed=new,
                write_bytes_per_s=moved.live_bytes_per_s,
            )
        )
    return {demand.verdict for demand in throttle_loads(partitions, rates)}


# A throttle that only makes a move slow has no alert that a finish could be promised in.
@pytest.mark.parametrize("case", [*CASES, *SITUATIONS], ids=lambda case: case.name)
def test_the_throttle_of_every_move_case_is_too_low(case: MoveCase) -> None:
    wrong = {Verdict.STARVED, Verdict.LOSING}
    assert bool(verdicts(case) & wrong) == (case.switch is None)
    assert verdicts(case, case.switch) & wrong


def test_twenty_moves_change_near_their_alert_and_each_has_a_name_of_its_own() -> None:
    changes = [case.change for case in CHANGING if case.change is not None]
    # The other six have a partition that ends.
    assert (len(CHANGING), len(changes), sum(change.elects for change in changes)) == (20, 14, 4)
    assert all(change.after_s is None or 0 < change.after_s < 10 for change in changes)
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_group_replaces_its_own_names_and_no_other() -> None:
    known = merge([], [Figure("kept", 1.0, "s", 3), Figure("measured_again", 2.0, "s", 3)], _OLD)
    merged = merge(known, [Figure("measured_again", 2.5, "s", 5), Figure("another", 4.0, "ratio", 5)], _NEW)
    assert [(r["name"], r["value"], r["n"], r["commit"]) for r in merged] == [
        ("another", 4.0, 5, "bbb"),
        ("kept", 1.0, 3, "aaa"),
        ("measured_again", 2.5, 5, "bbb"),
    ]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with two benchmarks that share a module, and a product of one module."""
    made = {
        "planning/sums.py": "",
        "benchmarks/harness.py": "",
        "benchmarks/one.py": "from benchmarks import harness",
        "benchmarks/two.py": "from benchmarks.harness import ground\nfrom benchmarks.listed import CLASSES",
        "benchmarks/listed.py": "from benchmarks.one import One",
        "tests/test_one.py": "",
        "ivy.xml": "",
        "requirements.lock": "",
    }
    for name, text in made.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(results, "CHECKOUT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "one", "two", "two_without"),
    [
        ("planning/sums.py", True, True, True),
        ("ivy.xml", True, True, True),
        ("benchmarks/harness.py", True, True, True),
        ("benchmarks/one.py", True, True, False),
        ("benchmarks/two.py", False, True, True),
        ("tests/test_one.py", False, False, False),
    ],
)
def test_parts_count_together_until_their_code_changes(
    checkout: Path, changed: str, one: bool, two: bool, two_without: bool
) -> None:
    def now() -> list[str]:
        two = "benchmarks.two"
        return [results.code("benchmarks.one"), results.code(two), results.code(two, without="benchmarks.listed")]

    before = now()
    with (checkout / changed).open("a") as file:
        file.write("\nCHANGED = 1")
    assert [old != new for old, new in zip(before, now(), strict=True)] == [one, two, two_without]


def test_comments_and_docstrings_do_not_change_the_hash_of_the_code(checkout: Path) -> None:
    module = checkout / "planning" / "sums.py"
    module.write_text('"""Sums."""\n\n\ndef one():\n    """Return it."""\n    return 1  # why\n')
    before = results.code()
    module.write_text('"""Other words."""\n\n\ndef one():\n    """Return one."""\n    # Because.\n    return 1\n')
    assert results.code() == before
    module.write_text('"""Sums."""\n\n\ndef one():\n    """Return it."""\n    return 2  # why\n')
    assert results.code() != before


def test_the_file_is_a_list_of_whole_objects(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write([Figure("first", 1.0, "s", 1)], _OLD, path)
    write([Figure("second", 2.0, "s", 1)], _NEW, path)
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert [r["name"] for r in stored] == ["first", "second"]
    assert all(sorted(r) == _FIELDS for r in stored)
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("values", "ratio", "expected"),
    [
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        # Place 0.5 x 3 = 1.5: half way from 2 to 3.
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.5),
        # Place 0.95 x 20 = 19 of 0 to 20.
        ([float(n) for n in range(21)], 0.95, 19.0),
        # Place 0.95 x 2 = 1.9: nine tenths from 20 to 30.
        ([10.0, 20.0, 30.0], 0.95, 29.0),
        ([7.0], 0.95, 7.0),
    ],
)
def test_a_percentile_lies_between_its_neighbours(values: list[float], ratio: float, expected: float) -> None:
    assert percentile(values, ratio) == pytest.approx(expected)


def test_a_percentile_needs_values() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_slope_is_that_of_the_least_squares() -> None:
    # Means 1 and 2: (-1)(-1) + 0 x 2 + 1 x (-1) = 0.
    assert slope_per_s([(0, 1), (1, 4), (2, 1)]) == pytest.approx(0.0)
    # Means 1 and 3: (-1)(-2) + 0 x (-1) + 1 x 3 = 5, over (-1)^2 + 0 + 1^2 = 2.
    assert slope_per_s([(0, 1), (1, 2), (2, 6)]) == pytest.approx(2.5)


def test_samples_of_one_time_have_no_slope() -> None:
    with pytest.raises(ValueError, match="two times"):
        slope_per_s([(1.0, 5.0)])


def test_growth_is_per_hour_and_against_the_beginning() -> None:
    # 1000 bytes at first and 1 byte more every 36 s: 100 an hour. Of 11 samples the first tenth is one.
    samples = [(36.0 * n, 1000.0 + n) for n in range(11)]
    assert growth_ratio_per_hour(samples) == pytest.approx(0.1)


def test_the_warm_up_does_not_count() -> None:
    # A quarter of 0 to 100 s.
    assert after_warm_up([(0, 1), (20, 2), (25, 3), (100, 4)]) == [(25, 3), (100, 4)]


def test_predictions_are_compared_with_real_times() -> None:
    outcomes = [
        # 10 % late and in the range, 20 % early and out of it, 5 % late and at its end.
        PredictedFinish(Finish(80, 100, 120), 50, 110),
        PredictedFinish(Finish(90, 100, 110), 100, 80),
        PredictedFinish(Finish(195, 200, 210), None, 210),
        # Nothing was promised.
        PredictedFinish(None, None, 60),
    ]
    found = {figure.name: (figure.value, figure.n) for figure in figures(outcomes)}
    assert found == {
        "finish_error_ratio_median": (pytest.approx(0.1), 3),
        "finish_error_ratio_max": (pytest.approx(0.2), 3),
        "finish_bias_ratio": (pytest.approx(0.05), 3),
        "finish_range_hit_ratio": (pytest.approx(2 / 3), 3),
        # 40 of 100, 20 of 100, 15 of 200 s.
        "finish_range_width_ratio_median": (pytest.approx(0.2), 3),
        # 110 for 50 s, and 80 for 100 s: 1.2 too late and 0.2 too early.
        "finish_printed_error_ratio_median": (pytest.approx(0.7), 2),
        "finish_printed_bias_ratio": (pytest.approx(0.5), 2),
        "finish_unknown_ratio": (pytest.approx(0.25), 4),
    }


def week(files: list[int]) -> list[dict[str, Any]]:
    """Return days of a silver table with the given files, and of a table that is kept forever and grows."""
    tables = [("silver/messages", n, n * 100) for n in files], [("alerts/events", n, n) for n in range(len(files))]
    names = ("table", "files_after", "bytes_after")
    return [
        {"day": number, "done": [dict(zip(names, one, strict=True)) for one in day]}
        for number, day in enumerate(zip(*tables, strict=True))
    ]


def test_a_table_may_grow_until_all_days_are_there_and_no_further() -> None:
    assert RETENTION.silver_keep_days == 4
    require_bounded(week([1, 2, 3, 4, 4, 4]))
    with pytest.raises(HeadroomError, match="silver/messages grew beyond its 4 days: files_after 4 to 5"):
        require_bounded(week([1, 2, 3, 4, 4, 5]))


def test_latencies_are_percentiles_over_all_rounds() -> None:
    batched = [LatencyRun((0.1,), (0.1, 0.1), 5.0), LatencyRun((0.3,), (0.1, 0.3), 5.0)]
    at_once = [LatencyRun((0.4,), (0.2,), 1.0), LatencyRun((0.4,), (0.2,), 1.0)]
    values = {figure.name: figure.value for figure in election_figures(batched, at_once)}
    # Place 0.99 x 1 of 0.1 to 0.3, and 0.99 x 3 = 2.97 of 0.1, 0.1, 0.1, 0.3.
    assert values["produce_p99_batched_s"] == pytest.approx(0.298)
    assert values["produce_p99_all_at_once_s"] == pytest.approx(0.4)
    assert values["produce_p99_ratio_batched_over_all_at_once"] == pytest.approx(0.745)
    assert values["produce_p99_same_window_ratio"] == pytest.approx(0.294 / 0.2)


def test_an_expected_finish_is_compared_with_the_time_that_was_left_in_each_tick() -> None:
    def row(tick_ms: int, eta_s: float | None, remaining_bytes: int = 1) -> dict[str, Any]:
        return {"tick_ms": tick_ms, "eta_s": eta_s, "remaining_bytes": remaining_bytes}

    headroom = [
        # Before a quota window has passed.
        row(20_000, 500.0),
        # 60 s of 100 s are left: 20 s too early, by the larger one of two.
        *(row(50_000, 30.0), row(50_000, 40.0)),
        # 40 s are left: 10 s too late; what has nothing to copy does not count.
        *(row(70_000, 50.0), row(70_000, 900.0, 0)),
        # Of one broker it is unknown.
        *(row(80_000, 30.0), row(80_000, None)),
        # After the end.
        row(120_000, 500.0),
    ]
    move = RecordedMove("m", 0, 0.0, 1e6, 9_000, 10_000, 110_000, {}, headroom, [])
    assert move.eta_error_ratios() == [pytest.approx(0.2), pytest.approx(-0.1), None]
    found = {figure.name: (figure.value, figure.n) for figure in eta_figures([move])}
    assert found == {
        "eta_error_ratio_median": (pytest.approx(0.15), 2),
        "eta_error_ratio_p95": (pytest.approx(0.195), 2),
        "eta_error_ratio_max": (pytest.approx(0.2), 2),
        "eta_unknown_ratio": (pytest.approx(1 / 3), 3),
    }
    assert eta_figures([]) == []


def test_the_planned_cluster_is_always_the_same_and_has_all_cases() -> None:
    made = elections.cluster(4000, non_preferred_ratio=0.5)
    assert made == elections.cluster(4000, non_preferred_ratio=0.5)
    non_preferred = [p for p in made.partitions if p.leader != p.replicas[0]]
    assert len(non_preferred) / 4000 == pytest.approx(0.5, abs=0.05)
    # One in a hundred is listed, every second of these moves.
    assert (len(made.constraints.throttled), sum(p.moving for p in made.partitions)) == (40, 20)
    plan = plan_elections(made.partitions, made.limits, made.constraints)
    assert sum(len(batch.partitions) for batch in plan.batches) > 0.9 * len(non_preferred)
    assert Reason.MOVING in {left.reason for left in plan.left_out}
