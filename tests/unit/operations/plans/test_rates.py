"""Rates of a plan: the busy hour where there is one, measured rates otherwise."""

from __future__ import annotations

from pathlib import Path

from headroom.operations.plans.rates import busy_hour_rates, known_rates, with_busy_hour
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.tables.partition_load import BusyHourRates

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BUSY = BusyHourRates(95.0, {T0: 9e6}, 0, 3_600_000, 1)


def measured() -> ClusterState:
    partitions = {
        name: PartitionPlacement("t", name.partition, 1, (1,), (1,), write_bytes_per_s=1e6) for name in (T0, T1)
    }
    return ClusterState("c", 0, {1: BrokerState(1)}, partitions, rates_from="two readings 5 s apart")


def test_the_busy_hour_is_taken_where_a_partition_has_one() -> None:
    state = with_busy_hour(measured(), BUSY)
    assert {name: p.write_bytes_per_s for name, p in state.partitions.items()} == {T0: 9e6, T1: 1e6}
    assert "percentile 95" in state.rates_from
    assert state.rates_from.endswith("partitions without such an hour: two readings 5 s apart")
    assert known_rates(BUSY).write_bytes_per_s == {T0: 9e6}


def test_without_a_busy_hour_the_measured_rates_stay_and_the_reason_is_given() -> None:
    state = with_busy_hour(measured(), BusyHourRates(95.0, missing="no table"))
    assert state.partitions == measured().partitions
    assert state.rates_from == "two readings 5 s apart (no busy hour: no table)"


def test_a_table_that_cannot_be_read_stops_no_estimate(tmp_path: Path) -> None:
    settings = Settings(ClusterSettings(name="c", bootstrap_servers=("h:1",)), store=StoreSettings(path=str(tmp_path)))
    assert "does not exist yet" in (busy_hour_rates(settings).missing or "")
    log = tmp_path / PARTITION_LOAD.path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("no commit\n")
    broken = busy_hour_rates(settings)
    assert broken.missing is not None
    assert PARTITION_LOAD.path in broken.missing
    assert not broken.write_bytes_per_s
