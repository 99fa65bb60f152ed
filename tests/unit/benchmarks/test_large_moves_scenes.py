"""Loads, rates and sizes of the scenes of large moves, computed by hand, and the same in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.large_moves.scenes.base import MoveScene
from benchmarks.groups.large_moves.scenes.death import DestinationDeath, LeaderDeath
from benchmarks.groups.large_moves.scenes.directories import LogDirectories, Sample, around, nearest
from benchmarks.groups.large_moves.scenes.growing import GrowingFault
from benchmarks.groups.large_moves.scenes.large import LargeMove
from benchmarks.groups.large_moves.scenes.leaderless import LeaderlessPartition
from benchmarks.groups.large_moves.scenes.near import NearThreshold, move_outcome
from benchmarks.groups.large_moves.scenes.restart import RestartBefore, RestartDuring
from benchmarks.groups.large_moves.scenes.short import LowThrottle
from benchmarks.groups.large_moves.scenes.uneven import UnevenThrottles
from benchmarks.groups.large_moves.schedule import CLASSES, schedule
from benchmarks.groups.large_moves.scoring.claims import number_checks
from benchmarks.groups.large_moves.stage.groups import Group, Load, inbound_load, leader_load, partitions
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from tests.unit.benchmarks.test_large_moves_scoring import announcement

ALL = schedule()
SIZE = (1_000_000, 2_000_000)


def rate_of(scene: MoveScene, role: Role) -> float:
    """Return the rate of all brokers in one role."""
    found = {rate for (_, of), rate in scene.rates().items() if of is role}
    assert len(found) == 1
    return found.pop()


def approx(load: Load) -> tuple[object, object]:
    return pytest.approx(load.in_sync_bytes_per_s), pytest.approx(load.required_bytes_per_s)


def test_a_leader_sends_to_old_and_new_followers_of_what_it_leads_and_moves() -> None:
    groups = [
        Group(10, (1, 2, 3), (1, 2, 4), 100.0, *SIZE),
        Group(5, (2, 1), (2, 4), 100.0, *SIZE),
        # It does not move, so no list names it.
        Group(50, (1, 2), (1, 2), 100.0, *SIZE),
    ]
    # 10 x 100 to each of two old followers and a new one; 5 x 100 to one of each.
    assert leader_load(groups, 1) == Load(2000.0, 3000.0)
    assert leader_load(groups, 2) == Load(500.0, 1000.0)
    # Broker 2 takes over from 1: to 3 and 4 of the first group, to 4 of its own; 1 fetches nothing until it is back.
    assert leader_load(groups, 2, down={1}) == Load(1000.0, 2000.0 + 500.0, 1000.0 + 500.0)
    assert inbound_load(groups, 4) == Load(0.0, 1500.0)
    assert inbound_load(groups, 3) == Load(0.0, 0.0)


def test_the_new_leader_is_the_first_in_sync_replica_in_target_order() -> None:
    group = Group(1, (1, 2, 3), (4, 3, 2), 0.0, *SIZE)
    assert group.leader() == 1
    assert group.leader({1}) == 3
    assert group.leader({1, 3}) == 2
    # Broker 4 is new, and not in sync.
    assert group.leader({1, 2, 3}) is None


def test_partitions_are_numbered_group_by_group() -> None:
    one, two = Group(2, (1,), (2,), 0.0, *SIZE), Group(1, (2,), (3,), 0.0, *SIZE)
    assert partitions([one, two]) == [one, one, two]
    assert (one.adding, one.moves, Group(1, (1, 2), (1, 2), 0.0, *SIZE).moves) == ((2,), True, False)


def test_every_class_has_its_scenes_and_all_of_them_are_the_same_each_time() -> None:
    assert schedule() == schedule()
    counts = {of.key: sum(type(scene) is of for scene in ALL) for of in CLASSES}
    # A leader and a destination that die are one class of faults, and so are the two rolling restarts.
    assert counts == {
        "large": 4,
        "short": 4,
        "death": 4,
        "destination": 2,
        "restart_before": 2,
        "restart_during": 2,
        "uneven": 4,
        "near": 6,
        "growing": 4,
        "directories": 4,
        "leaderless": 4,
    }


def test_scenes_can_be_chosen_by_class_and_number() -> None:
    assert [scene.name for scene in schedule("near:2, large", each=2)] == ["near:2", "large:0", "large:1"]
    assert schedule("near:2") == [NearThreshold.drawn(2)]
    for wrong in ("nearly", "near:x"):
        with pytest.raises(HeadroomError, match="there are large, short"):
            schedule(wrong)


@pytest.mark.parametrize("scene", ALL, ids=lambda scene: scene.name)
def test_a_scene_uses_its_four_brokers_and_has_a_title(scene: MoveScene) -> None:
    assert sorted((scene.a, scene.b, scene.c, scene.d)) == [1, 2, 3, 4]
    assert scene.title
    used = {broker for group in scene.groups() for broker in (*group.before, *group.after)}
    assert used <= {1, 2, 3, 4}
    assert all(len(set(group.before)) == len(group.before) for group in scene.groups())
    assert all(rate > 0 for rate in scene.rates().values())


@pytest.mark.parametrize("number", range(4))
def test_healthy_moves_have_a_throttle_far_above_what_is_required(number: int) -> None:
    scene = LargeMove.drawn(number)
    assert sum(group.count for group in scene.groups()) == (240, 240, 600, 600)[number]
    assert all(200_000 <= size <= 4_000_000 for group in scene.groups() for size in group.sizes(scene.sizes_draw()))
    least = min(scene.rates().values())
    assert least >= (4e6 if number % 2 == 0 else 20e6)
    # Two thirds of at most 0.5 MB/s, to two followers each; when a third has changed its leader, all of it.
    assert max(leader_load(scene.groups(), b).required_bytes_per_s for b in (1, 2, 3, 4)) <= 0.67e6
    assert least > 4 * 1.0e6 - 1


def low_throttle(number: int) -> LowThrottle:
    # Half way: 2.0 MB/s are written.
    return LowThrottle(number, 1, 2, 3, 4, extent=0.5, load=0.5)


@pytest.mark.parametrize(
    ("number", "in_sync", "required", "throttle"),
    [
        # RF 2: 2.0 to one follower in sync, 4.0 with the new one. 0.65 of in-sync use; 0.45 of the way to required.
        (0, 2.0, 4.0, 1.3),
        (1, 2.0, 4.0, 2.9),
        # RF 3: 4.0 to two in sync, 6.0 with the new one.
        (2, 4.0, 6.0, 2.6),
        (3, 4.0, 6.0, 4.9),
    ],
)
def test_a_throttle_that_is_too_low_starves_or_loses(
    number: int, in_sync: float, required: float, throttle: float
) -> None:
    scene = low_throttle(number)
    assert approx(scene.load_of_leader()) == (in_sync * 1e6, required * 1e6)
    assert scene.throttle_bytes_per_s() == pytest.approx(throttle * 1e6)
    assert sum(group.count for group in scene.groups()) == 60
    assert scene.starves is (throttle < in_sync)


def death(number: int) -> LeaderDeath:
    # A unit of 0.8 MB/s.
    return LeaderDeath(number, 1, 2, 3, 4, extent=0.5, load=0.5)


@pytest.mark.parametrize(
    ("number", "throttle", "too_low"),
    # Leaders require 3 units before and 4 after; half way from 3.25 to 3.5, or 8.
    [(0, 3.375, True), (1, 3.375, True), (2, 8.0, False), (3, 8.0, False)],
)
def test_a_throttle_is_enough_before_the_leader_dies_and_too_low_or_not_after(
    number: int, throttle: float, too_low: bool
) -> None:
    scene, unit = death(number), 0.8e6
    before, after = scene.load_before().required_bytes_per_s, scene.load_after().required_bytes_per_s
    assert (before, after) == (pytest.approx(3 * unit), pytest.approx(4 * unit))
    assert rate_of(scene, Role.LEADER) == pytest.approx(throttle * unit)
    assert (throttle * unit < after) is too_low
    # A new replica gets less than is written even if the broker sends 7 % more than its throttle.
    in_sync = scene.load_after().in_sync_bytes_per_s
    assert too_low is (1.07 * throttle * unit < in_sync + (after - in_sync))
    inbound = max(inbound_load(scene.groups(), b).required_bytes_per_s for b in (1, 2, 3, 4))
    assert inbound < rate_of(scene, Role.FOLLOWER)


@pytest.mark.parametrize("number", range(4))
def test_all_new_leaders_have_the_same_load(number: int) -> None:
    scene = death(number)
    loads = [leader_load(scene.groups(), broker, {1}) for broker in scene.new_leaders()]
    assert scene.new_leaders() == ((2, 3) if number % 2 else (2,))
    assert all(approx(load) == (pytest.approx(1.6e6), pytest.approx(3.2e6)) for load in loads)


def test_a_dead_destination_has_replicas_that_move_to_it_and_others() -> None:
    scene = DestinationDeath(0, 1, 2, 3, 4, extent=0.5, load=0.5)
    moving = [group for group in scene.groups() if 4 in group.adding]
    resting = [group for group in scene.groups() if 4 in group.before]
    assert (sum(g.count for g in moving), sum(g.count for g in resting)) == (120, 60)
    # Units of 0.8 MB/s: every leader and the destination require 2, the rate is 3.4.
    assert approx(inbound_load(scene.groups(), 4)) == (0.0, 1.6e6)
    assert rate_of(scene, Role.LEADER) == rate_of(scene, Role.FOLLOWER) == pytest.approx(2.72e6)


def test_after_rolling_restarts_either_leader_requires_twice_the_write_rate() -> None:
    for number, ratio in ((0, 1.375), (1, 0.65)):
        scene = RestartBefore(number, 1, 2, 3, 4, extent=0.5, load=0.5)
        assert approx(scene.load_of_leader()) == (2.0e6, 4.0e6)
        assert approx(leader_load(scene.groups(), 1)) == (2.0e6, 4.0e6)
        assert rate_of(scene, Role.LEADER) == rate_of(scene, Role.FOLLOWER) == pytest.approx(ratio * 2.0e6)


def test_during_a_rolling_restart_the_throttle_suffices_for_any_leaders() -> None:
    for number in range(2):
        scene = RestartDuring.drawn(number)
        written = sum(group.writes_bytes_per_s for group in scene.groups())
        # At worst one broker leads everything that it holds, half of all, and has two followers of each.
        assert min(scene.rates().values()) > 3 * written / 2 * 2
        # At that rate each leader has to send more than a minute's worth.
        sent = [group.count * group.least_bytes for group in scene.groups()]
        assert min(sent) / max(scene.rates().values()) > 50


@pytest.mark.parametrize("number", range(4))
def test_one_rate_of_many_is_too_low_and_the_advice_for_it_is_less_than_most_others(number: int) -> None:
    # Leaders and the destination require 2 units, the advice is 1.2 x that.
    scene = UnevenThrottles(number, 1, 2, 3, 4, extent=0.5, load=0.5)
    unit = 1.9e6 if number == 1 else 1.6e6
    assert scene.load_of_low_rate().required_bytes_per_s == pytest.approx(2 * unit)
    rates = scene.rates()
    low_keys = [key for key, rate in rates.items() if rate <= 2 * unit]
    assert low_keys == [scene.low_rate_key()] == [(4, Role.FOLLOWER) if number == 1 else (1, Role.LEADER)]
    higher = sum(rate > 2.4 * unit for rate in rates.values())
    # No rate at all is higher still.
    assert higher + 8 - len(rates) == 7


@pytest.mark.parametrize("worst", [0.0, 1.0])
def test_a_destination_whose_rate_is_too_low_gets_less_than_it_must_also_with_a_response_of_each_leader_a_window(
    worst: float,
) -> None:
    scene = UnevenThrottles(1, 1, 2, 3, 4, extent=worst, load=0.0)
    gets = scene.rates()[scene.low_rate_key()] + 2 * 10e6 / 11
    assert gets < scene.load_of_low_rate().required_bytes_per_s


@pytest.mark.parametrize("number", [0, 2, 3])
@pytest.mark.parametrize("worst", [0.0, 1.0])
def test_a_leader_whose_rate_is_too_low_sends_less_than_it_must_also_with_a_response_a_window(
    number: int, worst: float
) -> None:
    scene = UnevenThrottles(number, 1, 2, 3, 4, extent=worst, load=0.0)
    assert scene.rates()[scene.low_rate_key()] + 10e6 / 11 < scene.load_of_low_rate().required_bytes_per_s


@pytest.mark.parametrize(
    ("number", "ratio"),
    # 6 % off, half way from 4 to 8: required is 2 x in-sync use.
    [(0, 1.88), (1, 1.88), (2, 2.12), (3, 2.12), (4, 1.06), (5, 0.94)],
)
def test_rates_near_a_threshold_are_a_few_percent_off_it(number: int, ratio: float) -> None:
    scene = NearThreshold(number, 1, 2, 3, 4, extent=0.5, load=0.5)
    written = scene.groups()[0].writes_bytes_per_s
    assert scene.throttle_bytes_per_s() == pytest.approx(ratio * written)
    assert approx(scene.load_of_leader()) == (written, 2 * written)
    assert scene.groups()[0].count == (60 if number in (0, 2, 5) else 3)
    assert rate_of(scene, Role.FOLLOWER) == pytest.approx(10 * written)


@pytest.mark.parametrize(
    ("growth", "finishes", "fails"),
    # Of 1000 bytes/s: a lag that falls by more than 50 will be gone; one that grows by more than 20 never.
    [(-51, True, False), (-50, False, False), (0, False, False), (20, False, False), (21, False, True)],
)
def test_growth_of_the_lag_decides_near_a_threshold(growth: float, finishes: bool, fails: bool) -> None:
    assert move_outcome(growth, 1000.0) == (finishes, fails)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchCluster:
    """Brokers that are not started; their folder goes with the test's."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return BenchCluster(4, second_log_dir=True)


def test_only_the_one_replica_is_in_the_directory_that_fails(bench: BenchCluster) -> None:
    for number in range(2):
        scene = GrowingFault.drawn(number)
        log_dirs = scene.log_dirs(bench)
        assert log_dirs[0, scene.d] == bench.log_dir(scene.d, second=True)
        affected = [n for n, g in enumerate(partitions(scene.groups())) if scene.d in (*g.before, *g.after)]
        assert sorted(n for n, _ in log_dirs) == affected
        assert {path for (n, _), path in log_dirs.items() if n} == {bench.log_dir(scene.d)}
        assert len(affected) == 221
        assert leader_load(scene.groups(), scene.b).required_bytes_per_s < 0.35 * min(scene.rates().values())
    lost = LeaderlessPartition.drawn(0)
    assert lost.log_dirs(bench) == {(0, lost.d): bench.log_dir(lost.d, second=True)}
    assert lost.groups()[0].before == (lost.d,)


def test_a_broker_has_its_usual_log_directory_and_a_second_one(bench: BenchCluster) -> None:
    assert bench.log_dir(1) == bench.folder / "kafka" / "data" / "broker-1"
    assert bench.log_dir(1, second=True) == bench.folder / "kafka" / "second" / "broker-1"


@pytest.mark.parametrize("number", range(4))
def test_a_move_between_directories_changes_no_number(number: int) -> None:
    # 1.7 MB/s are written: 1.7 in sync, 3.4 required.
    scene = LogDirectories(number, 1, 2, 3, 4, extent=0.5, load=0.5)
    assert approx(scene.load_of_leader()) == (1.7e6, 3.4e6)
    ratio = 1.45 / 2 if scene.low else 1.425
    assert scene.throttle_bytes_per_s() == pytest.approx(3.4e6 * ratio)
    assert scene.broker == (3, 1, 1, 2)[number]
    # Twenty partitions are done: 40 to two followers, 20 to one.
    assert scene.required(Sample(0.0, 40, 0)) == pytest.approx(1.7e6 / 60 * 100)


def test_a_number_between_two_samples_is_compared_with_the_nearer_edge_of_their_range() -> None:
    samples = [Sample(at_s, 60, round(100 - at_s)) for at_s in (0.0, 10.0, 20.0)]
    assert [sample.at_s for sample in around(samples, 12.0)] == [10.0, 20.0]
    assert [sample.at_s for sample in around(samples, 25.0)] == [20.0]
    assert [nearest(found, [90.0, 80.0]) for found in (70.0, 85.0, 95.0, None)] == [80.0, 85.0, 90.0, 80.0]


def test_numbers_of_an_alert_are_compared_with_those_computed_by_hand() -> None:
    checks = number_checks(3e6, Load(2e6, 4e6), 100e6, 4e6)
    right = {
        "throttle_bytes_per_s": 3e6,
        "required_bytes_per_s": 4.5e6,
        "in_sync_bytes_per_s": 2.2e6,
        "remaining_bytes": 110_000_000,
    }
    wrong = [
        {"throttle_bytes_per_s": 3.1e6},
        # 15 % of 4.0: 3.4 to 4.6. Of 20 of 60 partitions it would be a third.
        {"required_bytes_per_s": 1.4e6},
        {"in_sync_bytes_per_s": 1.6e6},
        {"remaining_bytes": 33_000_000},
    ]
    assert [check(announcement(0, **right)) for check in checks] == [None] * 5
    for change in wrong:
        assert sum(check(announcement(0, **{**right, **change})) is not None for check in checks) == 1
    unknown = announcement(0, **{**right, "remaining_bytes": None})
    assert [check(unknown) for check in checks] == [None] * 5
