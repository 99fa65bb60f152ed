"""The writer of broker loads on a local disk, without Spark: minutes once, and rates from counters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.schemas.config import BalanceSettings
from headroom.schemas.tables import BROKER_LOAD, Table
from headroom.streaming.delta import query as delta_query
from headroom.streaming.jobs.loads.broker_load import MINUTE_MS, BrokerLoadWriter, minute_of
from headroom.streaming.store.store import Store
from tests.unit.builders.throttle_status import TICK_MS

START_MS = minute_of(TICK_MS)
MB = 1_000_000
BROKERS = (1, 2, 3)


class LocalStore(Store):
    """A store whose reads need no JVM."""

    def _sql(self, table: Table, sql: str) -> list[dict[str, Any]]:
        return delta_query.rows({"data": self.location(table)}, sql)

    def last_ticks(self, table: Table) -> dict[str, int]:
        rows = self._sql(table, "SELECT cluster, max(tick_ms) AS tick_ms FROM data GROUP BY cluster")
        return {row["cluster"]: row["tick_ms"] for row in rows}

    def ticks_since(self, table: Table, since_ms: int) -> set[tuple[str, int]]:
        rows = self._sql(table, f"SELECT DISTINCT cluster, tick_ms FROM data WHERE tick_ms >= {since_ms}")
        return {(row["cluster"], row["tick_ms"]) for row in rows}


def store_at(folder: Path) -> LocalStore:
    no_spark: Any = None
    return LocalStore(no_spark, str(folder))


def writer(store: LocalStore, **settings: BalanceSettings) -> BrokerLoadWriter:
    no_spark: Any = None
    made = BrokerLoadWriter(no_spark, store, settings)
    made.prepare()
    return made


def rows(second: int, mb_in: Mapping[int, float], cluster: str = "c", **more: Any) -> list[Any]:
    """The rows of a tick in which the counters of brokers have grown to so many MB; the window shows 7 MB/s."""
    tick_ms = START_MS + 1000 * second
    return [
        {
            "cluster": cluster,
            "tick_ms": tick_ms,
            "broker": broker,
            "alive": True,
            "answered": True,
            "led_partitions": 4,
            "replicas": 8.0,
            "flush_p999_s": None,
            "network_in_bytes_per_s": 7.0 * MB,
            "network_in_bytes": round(total * MB),
            "network_in_read_ms": tick_ms,
            "network_out_bytes_per_s": None,
            "network_out_bytes": None,
            "network_out_read_ms": None,
            "requests_per_s": None,
            "disk_bytes": None,
            "disk_capacity_bytes": None,
            **more,
        }
        for broker, total in mb_in.items()
    ]


def table(store: LocalStore, where: str = "resource = 'network_in'") -> list[dict[str, Any]]:
    sql = f"SELECT * FROM data WHERE {where} ORDER BY cluster, tick_ms, broker, resource"
    return delta_query.rows({"data": store.location(BROKER_LOAD)}, sql)


def found(store: LocalStore) -> dict[tuple[int, int], float | None]:
    """By second and broker, what it receives in MB/s."""
    return {((r["tick_ms"] - START_MS) // 1000, r["broker"]): r["load"] and r["load"] / MB for r in table(store)}


def even(second: int) -> dict[int, float]:
    return dict.fromkeys(BROKERS, 100.0 + 10 * second)


def test_the_first_tick_of_a_minute_is_written_and_no_other(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    made = writer(store)
    for second in (5, 10, 59):
        made.append(rows(second, even(second)))
    made.append([*rows(61, even(61)), *rows(62, even(62)), *rows(125, even(125))])
    assert sorted({second for second, _ in found(store)}) == [5, 61, 125]
    assert {r["minute_ms"] - START_MS for r in table(store)} == {0, MINUTE_MS, 2 * MINUTE_MS}
    # 6 resources of 3 brokers.
    assert len(table(store, "true")) == 3 * 18


def test_a_rate_is_the_growth_since_the_minute_before_also_after_a_restart(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    writer(store).append(rows(0, even(0)))
    assert found(store)[0, 1] == 7.0
    # Broker 2 has restarted, and broker 3 was not there before.
    writer(store).append(rows(60, {1: 1300.0, 2: 5.0, 4: 0.0}))
    assert {broker: found(store)[60, broker] for broker in (1, 2, 4)} == {1: 20.0, 2: 7.0, 4: 7.0}


def test_a_minute_is_there_once_whoever_writes_it_again(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    made = writer(store)
    ticks = [*rows(0, even(0)), *rows(60, even(60))]
    made.append(ticks)
    once = table(store, "true")
    made.append(ticks)
    writer(store).append(ticks)
    # A late tick of a minute that is there, by a process that has written later ones.
    made.append(rows(90, even(90)))
    made.append(rows(30, even(30)))
    assert table(store, "true") == once


def test_slow_rounds_go_on_after_a_restart(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for minute in range(3):
        slow, well = ({"flush_p999_s": flush} for flush in (2.5, 0.1))
        second, seven = 60 * minute, 100.0 + 7 * 60 * minute
        writer(store).append([*rows(second, {1: seven}, **slow), *rows(second, {2: seven, 3: seven}, **well)])
    assert [(r["broker"], r["slow_rounds"]) for r in table(store) if r["tick_ms"] == START_MS + 120_000] == [
        (1, 3),
        (2, 0),
        (3, 0),
    ]


def test_each_cluster_has_its_own_minutes_capacities_and_counters(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    made = writer(store, a=BalanceSettings(network_in_capacity=50.0 * MB))
    made.append([*rows(0, even(0), "a"), *rows(0, even(0), "b")])
    made.append([*rows(60, {1: 1300.0}, "a"), *rows(70, {1: 170.0}, "b")])
    of_broker = table(store, "broker = 1 AND resource = 'network_in'")
    loads = {(r["cluster"], r["tick_ms"] - START_MS): (r["load"] / MB, r["capacity"]) for r in of_broker}
    assert loads == {
        ("a", 0): (7.0, 50.0 * MB),
        ("b", 0): (7.0, None),
        ("a", 60_000): (20.0, 50.0 * MB),
        ("b", 70_000): (1.0, None),
    }


def test_without_rows_or_a_new_minute_nothing_is_committed(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    made = writer(store)
    made.append([])
    made.append(rows(0, even(0)))
    before = sorted(Path(store.location(BROKER_LOAD), "_delta_log").iterdir())
    made.append(rows(30, even(30)))
    made.append([])
    assert sorted(Path(store.location(BROKER_LOAD), "_delta_log").iterdir()) == before


def test_unknown_loads_have_a_reason(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    unread = dict.fromkeys(("network_in_bytes_per_s", "network_in_bytes", "network_in_read_ms", "replicas"))
    writer(store).append([*rows(0, {1: 1.0}), *rows(0, {2: 1.0}, answered=False, **unread)])
    reasons = {(r["broker"], r["resource"]): r["unknown_reason"] for r in table(store, "load IS NULL")}
    assert reasons[2, "network_in"] == reasons[2, "replicas"] == "the broker did not answer"
    assert (1, "network_in") not in reasons
    assert reasons[1, "disk"]


def test_requests_and_disks_are_those_of_the_last_reading(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    read = {"requests_per_s": 900.0, "disk_bytes": 3e12, "disk_capacity_bytes": 4e12}
    writer(store).append([*rows(0, {1: 1.0}, **read), *rows(0, {2: 1.0})])
    found = {(r["broker"], r["resource"]): r for r in table(store, "resource IN ('requests', 'disk')")}
    assert [found[1, name]["load"] for name in ("requests", "disk")] == [900.0, 3e12]
    assert (found[1, "disk"]["capacity"], found[1, "disk"]["load_limit"]) == (4e12, 0.8 * 4e12)
    assert "were not read" in found[2, "requests"]["unknown_reason"]
    assert "were not read" in found[2, "disk"]["unknown_reason"]


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_cuts_repeats_and_restarts_change_no_row(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    seconds = sorted(data.draw(st.sets(st.integers(0, 400), min_size=1, max_size=12)))
    straight, cut = (store_at(tmp_path_factory.mktemp("loads")) for _ in range(2))
    writer(straight).append([row for second in seconds for row in rows(second, even(second))])
    made, at = writer(cut), 0
    while at < len(seconds):
        size = data.draw(st.integers(1, 4))
        made.append([row for second in seconds[at : at + size] for row in rows(second, even(second))])
        if data.draw(st.booleans()):
            made = writer(cut)
        # After a crash a batch runs again.
        at += size if data.draw(st.booleans()) or at + size >= len(seconds) else max(1, size - 1)
    assert table(cut, "true") == table(straight, "true")
