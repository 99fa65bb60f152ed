"""A store of small, real Delta tables for tests of the page: what one tick, one alert or one command has written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType
from arro3.core import Table as ArrowTable
from deltalake import DeltaTable, write_deltalake
from deltalake import Schema as DeltaSchema
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.dashboard.acting.actions import Actions
from headroom.dashboard.address import Address
from headroom.dashboard.app import create_app
from headroom.dashboard.security import TrustedProxies, allowed_hosts
from headroom.dashboard.site import Site
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import ClusterSettings, CollectSettings, Settings, StoreSettings
from headroom.schemas.tables import (
    ACTION_JOURNAL,
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALERT_MARKS,
    BRONZE_TICKS,
    ELECTION_PLAN,
    FETCHER_LAG,
    LEADER_DISTRIBUTION,
    LEADER_IMBALANCE,
    PARTITION_WRITE_RATE,
    REASSIGNMENT_PROGRESS,
    REPLICATION_LAG,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.streaming.delta.append import append, append_columns, create
from headroom.streaming.jobs.loads.replication_lag import replication_lags
from headroom.streaming.transforms.migrations import migration_rows

CLUSTER = "prod"
# 1,800,000,000 s after the epoch: 2027-01-15 08:00:00 UTC.
TICK_MS = 1_800_000_000_000
MB = 1_000_000.0
HOSTS = allowed_hosts("127.0.0.1", [])

Row = Mapping[str, Any]
CommandLine = Callable[[Sequence[str]], list[str]]


class DashboardStore:
    """Writes rows as the pipeline and the commands do, each call in one commit.

    Args:
        path: ``store.path``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, table: Table, *rows: Row) -> None:
        """Append rows; columns that no row has are null, and a table that is not there is created."""
        dated = [{**row, "date": _day(row["tick_ms"])} if "date" in table.names() else row for row in rows]
        names = [name for name in table.names() if any(name in row for row in dated)]
        append_columns(self.opened(table), {name: [row.get(name) for row in dated] for name in names})

    def opened(self, table: Table) -> DeltaTable:
        """Return a table, created if it is not there."""
        location = str(self.path / table.path)
        if not DeltaTable.is_deltatable(location):
            create(location, table)
        return DeltaTable(location)

    def throttles(self, *statuses: ThrottleStatus, tick_ms: int = TICK_MS, cluster: str = CLUSTER) -> None:
        """Append the verdicts of a tick."""
        self.rows(THROTTLE_HEADROOM, *(throttle_row(one, tick_ms, cluster) for one in statuses))

    def replicas(self, *rows: Row, tick_ms: int = TICK_MS, cluster: str = CLUSTER) -> None:
        """Append new replicas of a tick: of ``new_replica``."""
        self.rows(REASSIGNMENT_PROGRESS, *({"cluster": cluster, "tick_ms": tick_ms, **row} for row in rows))

    def rates(self, *rows: tuple[str, int, int | None, float | None, str | None], tick_ms: int = TICK_MS) -> None:
        """Append write rates: topic, partition, leader, bytes/s and method."""
        keys = ("topic", "partition", "leader", "write_bytes_per_s", "method")
        self.rows(PARTITION_WRITE_RATE, *({**_tick(tick_ms), **dict(zip(keys, row, strict=True))} for row in rows))

    def leaders(self, *rows: Row, tick_ms: int = TICK_MS) -> None:
        """Append leader balances of a tick: of ``leader_row``."""
        self.rows(LEADER_IMBALANCE, *({**_tick(tick_ms), **row} for row in rows))

    def elections(self, *, elections: int, tick_ms: int = TICK_MS) -> None:
        """Append a plan of elections, all in one batch."""
        first = [{"topic": "t", "partition": n} for n in range(elections)]
        plan = {"batches": 1, "elections": elections, "write_bytes_per_s": MB, "first_batch": first}
        empty: dict[str, Any] = {"outlooks": [], "left_out": [], "raise_first": []}
        self.rows(ELECTION_PLAN, {**_tick(tick_ms), **plan, **empty, "first_batch_write_bytes_per_s": MB})

    def lags(
        self, *rows: tuple[int, int, str, int, int | None], tick_ms: int = TICK_MS, has_metadata: bool = True
    ) -> None:
        """Append lag gauges: follower, its source, topic, partition and offsets (None: the gauge was -1).

        Metadata of the tick, if it has them, name these replicas alone.
        """
        keys = ("broker", "source_broker", "topic", "partition", "lag_offsets")
        named = [{**_tick(tick_ms), "fetcher": "f", **dict(zip(keys, row, strict=True))} for row in rows]
        self.rows(FETCHER_LAG, *named)
        if has_metadata:
            replicas = [
                {**row, "leader": row["source_broker"], "replicas": [row["source_broker"], row["broker"]]}
                for row in named
            ]
            self.rows(LEADER_DISTRIBUTION, *replicas)
        append(self.opened(REPLICATION_LAG), replication_lags(str(self.path), CLUSTER, tick_ms), REPLICATION_LAG)

    def tick_ends(self, *messages: Row, value: bytes | None = None, key: bytes | None = None) -> None:
        """Append the last messages of ticks as bronze has them; ``value`` and ``key``: instead of what they are."""
        table = self.opened(BRONZE_TICKS)
        first = 1000 * table.version()
        envelopes = [{"cluster": CLUSTER, "kind": "tick_end", "tick_ms": TICK_MS, **message} for message in messages]
        times_us = [one["tick_ms"] * 1000 for one in envelopes]
        keys = ("cluster", "kind", "tick_ms")
        columns: dict[str, list[Any]] = {
            "key": [key or json.dumps({name: one[name] for name in keys}).encode() for one in envelopes],
            "value": [value or json.dumps(one).encode() for one in envelopes],
            "topic": ["headroom.ticks"] * len(messages),
            "partition": [0] * len(messages),
            "offset": list(range(first, first + len(messages))),
            "timestamp": times_us,
            "date": [time_us // 86_400_000_000 for time_us in times_us],
        }
        # The library makes times and dates of numbers only.
        numbers = {"timestamp": DataType.int64(), "date": DataType.int32()}
        schema = DeltaSchema(table.schema().fields).to_arrow()
        fields = [schema.field(n) for n in range(len(schema))]
        arrays = [Array(columns[f.name], numbers.get(f.name, f.type)).cast(f.type) for f in fields]
        write_deltalake(table, ArrowTable.from_arrays(arrays, schema=schema), mode="append")

    def migrations(self, *partitions: MigrationProgress, tick_ms: int = TICK_MS) -> None:
        """Append the progress of migrating partitions at a tick, as the pipeline does."""
        for table, ticks in migration_rows({(CLUSTER, tick_ms): partitions}).items():
            self.rows(table, *(row for rows in ticks.values() for row in rows))

    def alerts(self, *events: AlertEvent) -> None:
        """Append events of alerts."""
        self.rows(ALERT_EVENTS, *map(asdict, events))

    def deliveries(self, *rows: Row) -> None:
        """Append steps of deliveries."""
        key = {"event_key": "a/1/firing", "alert_id": "a", "cluster": CLUSTER, "reference": ""}
        first = {"receiver": "slack", "state": "delivered", "attempt": 1, "answer": "ok", "delivery_ms": TICK_MS}
        self.rows(ALERT_DELIVERIES, *({**key, **first, **row} for row in rows))

    def suppressions(self, *rows: Row) -> None:
        """Append acknowledgements and silences."""
        none = dict.fromkeys(ALERT_MARKS.names())
        given = {"mark_id": "m", "action": "silence", "cluster": CLUSTER, "by": "ops@host", "note": "", "mark_ms": 1}
        self.rows(ALERT_MARKS, *({**none, **given, **row} for row in rows))

    def journal(self, *rows: Row) -> None:
        """Append steps of commands, each a number further in its run."""
        given = {"run_id": "r1", "cluster": CLUSTER, "command": "reassign run", "by": "ops@host", "at_ms": TICK_MS}
        step = {"step": "rate", "state": "intended", "subject": "broker 1 as leader", "before": None, "after": "1000"}
        self.rows(ACTION_JOURNAL, *({"seq": n, **given, **step, **row} for n, row in enumerate(rows, start=1)))

    def site(self, at_ms: int = TICK_MS, *others: str, cluster: str = CLUSTER, actions: Actions | None = None) -> Site:
        """Return the site of this store at a time of the clock, with settings of these clusters."""
        return Site([self.watched(name) for name in (cluster, *others)], lambda: at_ms, actions)

    def watched(self, cluster: str, interval_s: float = 5.0) -> WatchedCluster:
        """Return a cluster with settings, whose ticks are some seconds apart."""
        named = ClusterSettings(name=cluster, bootstrap_servers="broker1:9092")
        collect, store = CollectSettings(interval_s=interval_s), StoreSettings(path=str(self.path))
        return WatchedCluster(Settings(cluster=named, collect=collect, store=store), "orders.toml")

    def app(self, at_ms: int = TICK_MS, token: str | None = None) -> FastAPI:
        """Return the application at a time of the clock."""
        return create_app(self.site(at_ms), HOSTS, token)

    def acting_app(
        self,
        token: str | None,
        clock_ms: Callable[[], int],
        command_line: CommandLine,
        proxies: TrustedProxies | None = None,
    ) -> FastAPI:
        """Return the application that carries out commands, by a program in place of Headroom."""
        site = Site([self.watched(CLUSTER)], clock_ms, Actions(str(self.path), command_line, clock_ms))
        return create_app(site, HOSTS, token, proxies)

    def client(self, at_ms: int = TICK_MS, token: str | None = None) -> Client:
        """Return a client of the application."""
        return Client(self.app(at_ms, token))


class Client:
    """A browser's requests to an application, without a network; it keeps cookies and follows no redirect.

    Args:
        app: the application; an error of it is the answer that a browser gets.
        peer: address that it connects from.

    Attributes:
        app: the application.
    """

    def __init__(self, app: FastAPI, peer: str = "127.0.0.1") -> None:
        self.app = app
        transport = ASGITransport(app, raise_app_exceptions=False, client=(peer, 40_000))
        self._client = AsyncClient(transport=transport, base_url="http://127.0.0.1:8600")

    def request(self, method: str, url: str, **more: Any) -> Response:
        """Return the answer to a request."""
        return asyncio.run(self._client.request(method, url, **more))

    def get(self, url: str, **more: Any) -> Response:
        """Return the answer to a GET."""
        return self.request("GET", url, **more)

    def post(self, url: str, **more: Any) -> Response:
        """Return the answer to a POST."""
        return self.request("POST", url, **more)


def at(**query: Any) -> Address:
    """Return the address with some keys."""
    return Address(**query)


def throttle_row(status: ThrottleStatus, tick_ms: int = TICK_MS, cluster: str = CLUSTER) -> dict[str, Any]:
    """Return the row of ``gold/throttle_headroom`` that a status was read from."""
    load = status.load
    throttle, required = load.throttle_bytes_per_s, load.required_bytes_per_s
    values = {**asdict(load), **asdict(replace(status, load=None)), "cluster": cluster, "tick_ms": tick_ms}  # type: ignore[arg-type]
    return {name: value for name, value in values.items() if name in THROTTLE_HEADROOM.names()} | {
        "role": status.role.value,
        "verdict": status.verdict.value,
        "quota_bytes_per_s": load.used_bytes_per_s,
        "headroom_bytes_per_s": None if throttle is None or required is None else throttle - required,
        "moving_replicas": load.limited_replicas + load.free_replicas,
        "free_replicas": load.free_replicas,
        "rate_window_ms": 10_000,
    }


def new_replica(partition: int = 0, state: str = "catching_up", eta_s: float | None = 60.0, **more: Any) -> Row:
    """Return a new replica of topic ``t`` on broker 3 that broker 1 leads, and that has 75 of 100 MB."""
    known = state in ("catching_up", "in_sync")
    row = {
        "topic": "t",
        "partition": partition,
        "adding_replica": 3,
        "leader": 1,
        "lag_offsets": 1000,
        "lag_gauge_offsets": 1000,
        "remaining_bytes": 0 if state == "in_sync" else 25_000_000,
        "write_bytes_per_s": 2 * MB,
        "catch_up_bytes_per_s": MB,
        "eta_s": eta_s if known else None,
        "eta_low_s": eta_s if known else None,
        "eta_high_s": eta_s if known else None,
        "state": state,
        "frozen": False,
        "in_sync": state == "in_sync",
        "throttled": True,
        "rate_window_ms": 10_000,
        "replicas": [3, 2, 1],
        "removing": [1],
        "leader_log_bytes": 100_000_000,
    }
    return row | more


def leader_row(broker: int, preferred: int = 100, electable: int = 0, **more: Any) -> Row:
    """Return the leader balance of a broker."""
    row = {
        "broker": broker,
        "alive": True,
        "preferred_partitions": preferred,
        "non_preferred_partitions": electable,
        "electable_now": electable,
        "waiting_for_move": 0,
        "unavailable": 0,
        "leaderless": 0,
        "leader_partitions": preferred - electable,
        "imbalance_ratio": electable / preferred,
        "threshold_ratio": 0.1,
        "threshold_source": "setting",
        "write_bytes_per_s": MB,
        "preferred_write_bytes_per_s": 2 * MB,
    }
    return row | more


def event(alert_id: str = "a", state: str = "firing", tick_ms: int = TICK_MS, **more: Any) -> AlertEvent:
    """Return an event of an alert without evidence, which recommends nothing."""
    fields: dict[str, Any] = {
        "kind": "throttle_below_leader_write",
        "severity": "critical",
        "cluster": CLUSTER,
        "subject": "broker 1 as leader",
        "summary": f"summary of {alert_id}",
        "evidence": "{}",
        "recommendation": "{}",
        "event_ms": tick_ms,
    }
    return AlertEvent(alert_id=alert_id, state=state, tick_ms=tick_ms, **fields | more)


def values(rows: Sequence[Row], *keys: str) -> list[tuple[Any, ...]]:
    """Return some values of rows."""
    return [tuple(row[key] for key in keys) for row in rows]


def _tick(tick_ms: int) -> dict[str, Any]:
    return {"cluster": CLUSTER, "tick_ms": tick_ms}


def _day(tick_ms: int) -> Any:
    return datetime.fromtimestamp(tick_ms / 1000, timezone.utc).date()
