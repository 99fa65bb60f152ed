"""What /metrics gives, read as Prometheus reads it: what is known now, and nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from headroom.alerts.delivery.outbox import DeliveryFigures
from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.metrics import Collected
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.reading import MigrationReading
from headroom.schemas.alerts import AlertKind, AlertState
from headroom.schemas.keys import Role
from headroom.schemas.metrics import METRICS, MetricType
from headroom.schemas.migrations import PartitionAgreement
from headroom.streaming.transforms.moves.throttle_loads import EVIDENCE_PARTITIONS
from tests.unit.builders.broker_load import loads
from tests.unit.builders.leader_balance import balance
from tests.unit.builders.throttle_status import MB, TICK_MS, partition, status
from tests.unit.fakes.prometheus_scrape import STALE_S, Scene, event

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
BALANCED = [spec.name.removeprefix("headroom_leader_") for spec in METRICS if spec.name.startswith("headroom_leader_")]
PER_BROKER = [spec.name for spec in METRICS if "broker" in spec.labels]


def losing(broker: int = 1) -> ThrottleStatus:
    """Throttle 5 MB/s, required 8, in sync 2: losing."""
    return status(broker, LEADER, 5.0, 8.0, partition(remaining_bytes=10_000_000))


def published(*statuses: ThrottleStatus, top_n: int = 50) -> Scene:
    scene = Scene(top_n)
    scene.live.on_tick("orders", TICK_MS, statuses)
    return scene


def test_a_throttle_and_its_two_thresholds_are_exported_in_base_units() -> None:
    scene = published(losing())
    of = {"cluster": "orders", "broker": "1", "role": "leader"}
    assert scene.values("headroom_throttle_bytes_per_second", **of) == [5 * MB]
    assert scene.values("headroom_required_bytes_per_second", **of) == [8 * MB]
    assert scene.values("headroom_in_sync_bytes_per_second", **of) == [2 * MB]
    # 5 - 8
    assert scene.values("headroom_throttle_headroom_bytes_per_second", **of) == [-3 * MB]
    assert scene.values("headroom_remaining_bytes", **of) == [10_000_000]
    assert scene.values("headroom_moving_replicas", **of) == [1]


def test_only_the_present_verdict_has_a_series() -> None:
    scene = published(losing())
    assert scene.labels_of("headroom_verdict", "verdict") == ["losing"]
    scene.live.on_tick("orders", TICK_MS, [status(1, LEADER, 9.0, 8.0)])
    assert scene.labels_of("headroom_verdict", "verdict") == ["catching_up"]


def test_unknown_is_absent_and_not_zero() -> None:
    unknown = status(1, LEADER, None, None, in_sync_mb=None, remaining_bytes=None, throttle_known=False)
    scene = published(unknown)
    known = {name for name in PER_BROKER if scene.values(name)}
    assert known == {
        "headroom_moving_replicas",
        "headroom_waiting_replicas",
        # Who is in the ISR is known without a rate.
        "headroom_planned_under_replicated_partitions",
        "headroom_verdict",
    }
    assert scene.labels_of("headroom_verdict", "verdict") == ["no_data"]


def test_planned_under_replication_is_exported_by_leader_and_lost_replicas_by_follower() -> None:
    scene = published(status(1, LEADER, 5.0, 4.0, planned_partitions=3), status(2, FOLLOWER, 5.0, 4.0, lost_replicas=7))
    assert scene.values("headroom_planned_under_replicated_partitions", broker="1") == [3]
    assert scene.values("headroom_lost_replicas", broker="2") == [7]
    assert len(scene.values("headroom_lost_replicas")) == 1


def test_stalled_replicas_are_exported_even_if_the_verdict_is_unknown() -> None:
    scene = published(status(1, FOLLOWER, None, None, partition(stalled=True), throttle_known=False))
    assert scene.values("headroom_stalled_replicas") == [1]


def test_waiting_replicas_are_not_exported_as_stalled() -> None:
    scene = published(status(3, FOLLOWER, 5.0, 4.0, partition(), waiting_replicas=120))
    assert scene.values("headroom_waiting_replicas") == [120]
    assert scene.values("headroom_stalled_replicas") == [0]


def test_leader_balance_is_exported_per_broker() -> None:
    scene = Scene()
    scene.live.on_balances("orders", TICK_MS, [balance(2, 100, 30, waiting=5, unavailable=15, read_bytes_per_s=MB)])
    of = {"cluster": "orders", "broker": "2"}
    published = {name: scene.values(f"headroom_leader_{name}", **of) for name in BALANCED}
    assert published == {
        # (30 + 5 + 15) / 100
        "imbalance_ratio": [0.5],
        "imbalance_threshold_ratio": [0.1],
        "preferred_partitions": [100],
        "partitions": [50],
        "electable_partitions": [30],
        "waiting_partitions": [5],
        "unavailable_partitions": [15],
        "write_bytes_per_second": [8 * MB],
        "preferred_write_bytes_per_second": [10 * MB],
        "read_bytes_per_second": [MB],
        # Not known.
        "preferred_read_bytes_per_second": [],
    }


def test_a_broker_that_is_preferred_for_nothing_any_more_has_no_series_of_balance() -> None:
    scene = Scene()
    scene.live.on_balances("orders", TICK_MS, [balance(1, 10), balance(2, 10)])
    scene.live.on_balances("orders", TICK_MS + 1000, [balance(1, 10)])
    assert scene.labels_of("headroom_leader_imbalance_ratio", "broker") == ["1"]


def test_balances_may_be_twice_as_old_as_a_tick_and_no_older() -> None:
    scene = published(losing())
    scene.live.on_balances("orders", TICK_MS, [balance(1, 10)])
    scene.now_ms = TICK_MS + int(2 * STALE_S * 1000) - 1
    assert scene.values("headroom_leader_imbalance_ratio") == [0]
    scene.now_ms += 1
    assert [name for name in BALANCED if scene.values(f"headroom_leader_{name}")] == []


def test_without_a_throttle_there_is_no_headroom() -> None:
    scene = published(status(1, LEADER, None, 8.0))
    assert scene.values("headroom_throttle_headroom_bytes_per_second") == []
    assert scene.values("headroom_required_bytes_per_second") == [8 * MB]


def test_nothing_that_moves_is_a_zero_that_is_known() -> None:
    scene = published(status(1, LEADER, None, 0.0, in_sync_mb=0.0, limited=0, remaining_bytes=0))
    assert scene.values("headroom_remaining_bytes") == [0]
    assert scene.values("headroom_stalled_replicas") == [0]
    assert scene.values("headroom_eta_seconds") == []


def test_collection_times_errors_and_skipped_ticks_are_exported_and_counted() -> None:
    scene = published(losing())
    for missing, left_out in ((2, 0), (1, 3)):
        scene.live.on_collected("orders", Collected(0.3, missing, left_out))
    scene.live.on_collected("orders", Collected(None, 0, 0))
    scene.live.on_collected("orders", Collected(1.7, 1, 0))
    assert scene.values("headroom_unanswered_brokers", cluster="orders") == [1]
    # 2 + 1 + 0 + 1
    assert scene.values("headroom_collector_errors_total", cluster="orders") == [4]
    assert scene.values("headroom_skipped_ticks_total", cluster="orders") == [3]
    assert scene.values("headroom_collect_seconds_count", cluster="orders") == [3]
    assert scene.values("headroom_collect_seconds_bucket", le="0.5") == [2]
    scene.now_ms += int(STALE_S * 1000)
    assert scene.values("headroom_unanswered_brokers") == []
    assert scene.values("headroom_collector_errors_total") == [4]


def test_undelivered_events_are_exported_per_receiver() -> None:
    scene = published(losing())
    figures = [DeliveryFigures("slack", 3, TICK_MS), DeliveryFigures("webhook", 0, None)]
    scene.live.follow(lambda: None, lambda: figures)
    assert scene.values("headroom_undelivered_events", receiver="slack") == [3]
    assert scene.values("headroom_undelivered_events", receiver="webhook") == [0]
    assert scene.values("headroom_last_delivery_timestamp_seconds") == [TICK_MS / 1000]


def test_a_broker_that_left_has_no_series() -> None:
    scene = published(losing(1), losing(2))
    scene.live.on_tick("orders", TICK_MS + 1000, [losing(2)])
    for name in PER_BROKER:
        assert set(scene.labels_of(name, "broker")) <= {"2"}


def test_a_move_that_is_done_leaves_no_partition() -> None:
    scene = published(losing())
    assert scene.values("headroom_partition_write_bytes_per_second", topic="t", partition="0") == [2 * MB]
    assert scene.values("headroom_partition_remaining_bytes", topic="t", partition="0") == [10_000_000]
    # It stays in the throttled lists until someone clears them.
    scene.live.on_tick("orders", TICK_MS + 1000, [status(1, LEADER, 5.0, 4.0, partition(moving=False))])
    assert scene.values("headroom_partition_write_bytes_per_second") == []
    assert scene.values("headroom_partition_remaining_bytes") == []


def test_a_partition_has_one_series_from_its_leader() -> None:
    scene = published(losing(), status(3, FOLLOWER, 5.0, 8.0, partition(followers=1, remaining_bytes=1)))
    assert scene.values("headroom_partition_remaining_bytes") == [10_000_000]


def test_a_partition_of_unknown_rate_has_none() -> None:
    scene = published(status(1, LEADER, 5.0, None, partition(write_bytes_per_s=None, remaining_bytes=7)))
    assert scene.values("headroom_partition_write_bytes_per_second") == []
    assert scene.values("headroom_partition_remaining_bytes") == [7]


def test_ticks_that_stay_away_leave_the_age_and_no_old_numbers() -> None:
    scene = published(losing())
    scene.now_ms = TICK_MS + int(STALE_S * 1000) - 1
    assert scene.values("headroom_verdict") == [1]
    scene.now_ms = TICK_MS + int(STALE_S * 1000)
    assert [name for name in PER_BROKER if scene.values(name)] == []
    assert scene.values("headroom_partition_write_bytes_per_second") == []
    assert scene.values("headroom_tick_age_seconds") == [STALE_S]
    scene.now_ms += 5000
    assert scene.values("headroom_tick_age_seconds") == [STALE_S + 5]
    assert scene.values("headroom_tick_timestamp_seconds") == [TICK_MS / 1000]


def test_an_old_tick_of_a_backlog_brings_no_numbers() -> None:
    scene = Scene()
    scene.live.on_tick("orders", TICK_MS - 60_000, [losing()])
    assert scene.values("headroom_verdict") == []
    assert scene.values("headroom_tick_age_seconds") == [60]


def test_a_collector_whose_clock_is_ahead_does_not_hide_that_its_ticks_stay_away() -> None:
    scene = Scene()
    scene.live.on_tick("orders", TICK_MS + 3_600_000, [losing()])
    assert scene.values("headroom_tick_age_seconds") == [0]
    scene.now_ms += 31_000
    assert scene.values("headroom_tick_age_seconds") == [31]
    assert scene.values("headroom_verdict") == []


def test_before_the_first_tick_a_cluster_has_only_its_event_counts() -> None:
    scene = Scene()
    assert scene.values("headroom_tick_age_seconds") == []
    assert scene.values("headroom_rows_total") == []
    # Of every kind and state, so that the first event is a rise.
    assert scene.values("headroom_alert_events_total", cluster="orders") == [0.0] * (len(AlertKind) * len(AlertState))


def test_series_are_bounded_however_many_partitions_move() -> None:
    # 1,000 brokers that lead 200 each.
    statuses = [
        status(broker, LEADER, 5.0, 8.0, *(partition(1000 * n + broker, leader=broker) for n in range(200)))
        for broker in range(1000)
    ]
    statuses += [status(broker, FOLLOWER, 5.0, 8.0) for broker in range(1000)]
    scene = published(*statuses, top_n=50)
    assert len(scene.values("headroom_partition_write_bytes_per_second")) == 50
    # By broker and role: 10 names at most, of which eta is absent. 50 write rates; nothing is known to remain.
    moves = [s for family in scene.families() for s in family.samples if {"broker", "partition"} & set(s.labels)]
    assert len(moves) == 1000 * 2 * 10 + 50


def test_the_exported_partitions_are_those_of_highest_write_rate_times_followers() -> None:
    # 1 x 3 = 3, 2 x 2 = 4, 5 x 1 = 5; not known counts last.
    sizes = [(1.0, 3), (2.0, 2), (5.0, 1), (None, 9)]
    given = [
        partition(n, write_bytes_per_s=None if mb is None else mb * MB, followers=followers, remaining_bytes=1)
        for n, (mb, followers) in enumerate(sizes)
    ]
    assert published(status(1, LEADER, 5.0, 8.0, *given), top_n=2).labels_of(
        "headroom_partition_remaining_bytes", "partition"
    ) == ["2", "1"]
    assert published(status(1, LEADER, 5.0, 8.0, *given), top_n=0).values("headroom_partition_remaining_bytes") == []


def test_the_description_of_the_metric_states_the_limit_of_partitions_per_broker() -> None:
    spec = next(spec for spec in METRICS if spec.name == "headroom_partition_write_bytes_per_second")
    assert f"{EVIDENCE_PARTITIONS} per leading broker" in spec.meaning


def test_alerts_are_counted_by_kind_severity_and_state() -> None:
    scene = Scene()
    scene.live.on_events(
        [event("firing"), event("firing", subject="broker 2 as leader"), event("pending", kind="no_data")]
    )
    assert scene.values("headroom_alerts", state="firing", severity="warning") == [2]
    assert scene.values("headroom_alerts", kind="no_data", state="pending") == [1]
    assert scene.values("headroom_alert_events_total", kind="throttle_below_leader_write", state="firing") == [2]


def test_an_alert_that_is_resolved_has_no_series_and_its_events_stay_counted() -> None:
    scene = Scene()
    scene.live.on_events([event("pending"), event("firing")])
    assert scene.values("headroom_alerts") == [1]
    scene.live.on_events([event("resolved", TICK_MS + 1)])
    assert scene.values("headroom_alerts") == []
    assert scene.values("headroom_alert_events_total", state="resolved", kind="throttle_below_leader_write") == [1]


def test_alerts_of_a_previous_run_are_active_but_not_counted_as_events() -> None:
    scene = Scene()
    scene.live.restore([event("firing")])
    assert scene.values("headroom_alerts", state="firing") == [1]
    assert scene.values("headroom_alert_events_total", state="firing") == [0.0] * len(AlertKind)


def test_events_received_before_the_restore_override_those_of_the_previous_run() -> None:
    scene = Scene()
    scene.live.on_events([event("resolved", TICK_MS + 1000)])
    scene.live.restore([event("firing")])
    assert scene.values("headroom_alerts") == []


def test_the_time_to_a_verdict_counts_from_the_ticks_own_time() -> None:
    scene = Scene()
    for seconds in (1.0, 1.2, 100.0):
        scene.now_ms = TICK_MS + int(seconds * 1000)
        scene.live.on_tick("orders", TICK_MS, [])
    # A bound belongs to its bucket: one up to 1 s, two up to 1.5 s, three in all; 1 + 1.2 + 100.
    assert scene.values("headroom_decision_seconds_bucket", le="1.0") == [1]
    assert scene.values("headroom_decision_seconds_bucket", le="1.5") == [2]
    assert scene.values("headroom_decision_seconds_bucket", le="60.0") == [2]
    assert scene.values("headroom_decision_seconds_bucket", le="+Inf") == [3]
    assert scene.values("headroom_decision_seconds_sum") == [pytest.approx(102.2)]
    assert scene.values("headroom_decision_seconds_count", cluster="orders") == [3]


def test_rows_and_batches_are_counted() -> None:
    scene = published(losing(1), losing(2))
    scene.live.on_tick("orders", TICK_MS + 1000, [losing(2)])
    scene.live.on_batch(0.3)
    assert scene.values("headroom_rows_total", cluster="orders") == [3]
    assert scene.values("headroom_batch_seconds_count") == [1]
    assert scene.values("headroom_batch_seconds_bucket", le="0.25") == [0]
    assert scene.values("headroom_batch_seconds_bucket", le="0.5") == [1]


PROPOSAL = BalanceAdvice("abc", TICK_MS, frozenset({2}), True, 3, 1, 5e9, 60.0, 0.75, {(2, "disk"): 4e9})
MIGRATING = replace(
    migration_progress(MigrationReading(PartitionAgreement("m", 1, "o", "t", "orders", 0), TICK_MS)),
    left_offsets=5,
    lost_offsets=0,
)


def full() -> Scene:
    """A scene in which every metric has a series."""
    leader = status(1, LEADER, 9.0, 8.0, partition(remaining_bytes=1), eta_s=10.0)
    scene = published(leader, status(2, FOLLOWER, 9.0, 8.0))
    scene.live.on_events([event("firing")])
    scene.live.on_batch(1.0)
    scene.live.on_collected("orders", Collected(0.3, 0, 0))
    scene.live.on_balances("orders", TICK_MS, [balance(1, 10, read_bytes_per_s=MB, preferred_read_bytes_per_s=MB)])
    scene.live.on_broker_loads("orders", loads({1: 30, 2: 10}, rounds={1: 5}, network_in_capacity=50 * MB))
    scene.live.on_proposal("orders", PROPOSAL)
    scene.live.on_migrations("orders", TICK_MS, [MIGRATING])
    scene.live.follow(lambda: None, lambda: [DeliveryFigures("slack", 1, TICK_MS)], lambda: 2)
    return scene


def test_a_proposal_has_its_gain_its_cost_and_the_loads_that_it_promises() -> None:
    scene = published(status(1, LEADER, 9.0, 8.0))
    assert scene.values("headroom_balance_proposal_actions") == []
    scene.live.on_proposal("orders", PROPOSAL)
    found = {
        name: scene.values(f"headroom_balance_proposal_{name}", cluster="orders")
        for name in ("actions", "gain_ratio", "copied_bytes", "duration_seconds")
    }
    assert found == {"actions": [3], "gain_ratio": [0.75], "copied_bytes": [5e9], "duration_seconds": [60]}
    assert scene.values("headroom_broker_load_promised", broker="2", resource="disk") == [4e9]
    # It stays after its loads are stale, until the next proposal; batches that never end have no time.
    scene.now_ms += 3_600_000
    scene.live.on_proposal("orders", replace(PROPOSAL, duration_s=None))
    assert scene.values("headroom_balance_proposal_duration_seconds") == []
    assert scene.values("headroom_balance_proposal_gain_ratio") == [0.75]


def test_the_load_of_a_broker_has_its_band_and_limit_and_what_is_unknown_has_no_series() -> None:
    scene = published(status(1, LEADER, 9.0, 8.0))
    scene.live.on_broker_loads("orders", loads({1: 30, 2: 10, 3: None}, network_in_capacity=50 * MB))
    received = {"broker": "1", "resource": "network_in"}
    assert scene.values("headroom_broker_load", **received) == [30 * MB]
    assert scene.values("headroom_broker_load_mean", **received) == [20 * MB]
    assert scene.values("headroom_broker_load_band_upper", **received) == [22 * MB]
    assert scene.values("headroom_broker_load_limit", **received) == [40 * MB]
    assert scene.values("headroom_broker_load_in_band", **received) == [0]
    assert scene.values("headroom_broker_load", broker="3") == []
    assert scene.values("headroom_broker_load", resource="disk") == []
    assert scene.values("headroom_broker_slow_rounds") == []


def test_a_migration_that_is_over_or_whose_ticks_stay_away_has_no_series() -> None:
    scene = published(status(1, LEADER, 9.0, 8.0))
    assert scene.values("headroom_migration_partitions") == []
    scene.live.on_migrations("orders", TICK_MS, [MIGRATING])
    assert scene.values("headroom_migration_partitions", migration="m", status="planned") == [1]
    scene.now_ms += 3_600_000
    assert scene.values("headroom_migration_partitions") == []


def test_every_metric_of_the_contract_is_exposed_with_its_type_labels_and_meaning() -> None:
    found = {}
    for family in full().families():
        # The parser takes the suffix off a counter's name.
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels, family.documentation)
    assert found == {spec.name: (spec.type.value, set(spec.labels), spec.meaning) for spec in METRICS}


def test_names_follow_the_conventions_of_prometheus() -> None:
    assert len({spec.name for spec in METRICS}) == len(METRICS)
    for spec in METRICS:
        assert spec.name.startswith("headroom_")
        assert spec.name.endswith("_total") == (spec.type is MetricType.COUNTER)
        assert bool(spec.buckets) == (spec.type is MetricType.HISTOGRAM)
        assert sorted(spec.buckets) == list(spec.buckets)
        unit = {"bytes/s": "_bytes_per_second", "bytes": "_bytes", "seconds": "_seconds"}.get(spec.unit, "")
        assert spec.name.endswith(unit)


def test_a_scrape_during_a_tick_sees_all_of_it_or_nothing() -> None:
    scene = Scene()
    stop = threading.Event()

    def publish_ticks() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            scene.live.on_tick("orders", TICK_MS, [status(b, LEADER, float(number), 8.0) for b in (1, 2, 3)])

    thread = threading.Thread(target=publish_ticks)
    thread.start()
    try:
        for _ in range(50):
            assert len(set(scene.values("headroom_throttle_bytes_per_second"))) <= 1
    finally:
        stop.set()
        thread.join()
