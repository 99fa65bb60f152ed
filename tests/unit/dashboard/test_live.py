"""Streams of pages, and tables that stay open while others write, compact and delete them."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest
from deltalake import QueryBuilder
from fastapi import FastAPI

from headroom.dashboard import app as app_module
from headroom.dashboard import live as live_module
from headroom.dashboard import stream as stream_module
from headroom.dashboard.data.open_tables import OpenTables
from headroom.dashboard.live import Live
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from headroom.schemas.tables import ALERT_EVENTS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta import query as delta_query
from tests.unit.builders.dashboard_store import CLUSTER, TICK_MS, DashboardStore, event, new_replica
from tests.unit.builders.throttle_status import partition, status

LEADER = status(1, Role.LEADER, 12, 10, partition())
TICKS_SQL = "SELECT tick_ms FROM data ORDER BY tick_ms"
# Longer than anything takes that these tests wait for.
DEADLINE_S = 30.0


# The number of changes


class CountedTables(OpenTables):
    """Tables that report each look at them."""

    def __init__(self, store_path: str) -> None:
        super().__init__(store_path)
        self.looked = threading.Event()
        self.looks = 0

    def version(self, table: Table) -> int | None:
        """Report the look, and return the version."""
        self.looked.set()
        # One of those that are looked at each time.
        self.looks += table is ALERT_EVENTS
        return super().version(table)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, with a deadline."""

    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), DEADLINE_S)


@asynccontextmanager
async def following(store: DashboardStore) -> AsyncIterator[tuple[Live, CountedTables]]:
    tables = CountedTables(str(store.path))
    live = Live(tables)
    live.start()
    try:
        yield live, tables
    finally:
        live.stop()


@pytest.mark.parametrize("what", ["tick", "replicas", "alert", "suppression", "delivery"])
def test_a_commit_wakes_a_stream(store: DashboardStore, what: str) -> None:
    store.throttles(LEADER)

    async def run() -> None:
        async with following(store) as (live, _):
            changes = live.changes(DEADLINE_S)
            seen = await anext(changes)
            # The first look at the tables is a change too.
            await until(lambda: live.version > seen)
            seen = await anext(changes)
            waiting = asyncio.ensure_future(anext(changes))
            commit = {
                "tick": lambda: store.throttles(LEADER, tick_ms=TICK_MS + 1000),
                "replicas": lambda: store.replicas(new_replica()),
                "alert": lambda: store.alerts(event()),
                "suppression": lambda: store.suppressions({}),
                "delivery": lambda: store.deliveries({}),
            }[what]
            await asyncio.to_thread(commit)
            assert await asyncio.wait_for(waiting, DEADLINE_S / 2) > seen

    asyncio.run(run())


def test_new_replicas_wake_no_page_before_the_verdicts_of_their_tick(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing new to show, and to render it again would keep the verdicts waiting."""
    monkeypatch.setattr(live_module, "_EVERY_S", 0.01)
    store.throttles(LEADER)
    store.throttles(LEADER, cluster="it's another")
    store.replicas(new_replica())

    async def run() -> None:
        async with following(store) as (live, tables):
            changes = live.changes(DEADLINE_S)
            await anext(changes)
            await until(lambda: live.version == 1)
            for cluster in (CLUSTER, "it's another"):
                seen, looks = live.version, tables.looks
                later: dict[str, Any] = {"tick_ms": TICK_MS + 1000, "cluster": cluster}
                await asyncio.to_thread(store.replicas, new_replica(), **later)
                # The third look from now begins after the commit, and the fourth when it has ended.
                await until(lambda looks=looks: tables.looks >= looks + 4)  # type: ignore[misc]
                assert live.version == seen
                await asyncio.to_thread(store.throttles, LEADER, **later)
                await until(lambda seen=seen: live.version == seen + 1)  # type: ignore[misc]

    asyncio.run(run())


def test_a_stream_gets_the_time_without_a_change_too(store: DashboardStore) -> None:
    async def run() -> None:
        async with following(store) as (live, _):
            changes = live.changes(0.01)
            await anext(changes)
            await until(lambda: live.version > 0)
            first, second = await anext(changes), await anext(changes)
            assert first == second

    asyncio.run(run())


def test_nothing_is_read_without_a_page(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "_EVERY_S", 0.001)
    store.throttles(LEADER)

    async def run() -> None:
        async with following(store) as (live, tables):
            assert not await asyncio.to_thread(tables.looked.wait, 0.3)
            changes = live.changes(0.01)
            await anext(changes)
            assert live.streams == 1
            await until(tables.looked.is_set)
            await changes.aclose()
            assert live.streams == 0

            def rests() -> bool:
                tables.looked.clear()
                return not tables.looked.wait(0.3)

            # A look that had begun may end, on a busy machine after some time.
            for _ in range(20):
                if await asyncio.to_thread(rests):
                    return
            pytest.fail("the tables are looked at although no page is open")

    asyncio.run(run())


def test_a_commit_between_two_pages_is_seen_by_the_second(store: DashboardStore) -> None:
    store.throttles(LEADER)

    async def run() -> None:
        async with following(store) as (live, _):
            first = live.changes(DEADLINE_S)
            await anext(first)
            await until(lambda: live.version == 1)
            await first.aclose()
            await asyncio.to_thread(store.throttles, LEADER, tick_ms=TICK_MS + 1000)
            second = live.changes(DEADLINE_S)
            await anext(second)
            await until(lambda: live.version == 2)
            await second.aclose()

    asyncio.run(run())


# Streams


class Reader:
    """A browser's end of one stream.

    Args:
        app: the application.
        path: path of the stream, with its query.
        reads: number of messages after which it does not read any more; None: it reads all.
    """

    def __init__(self, app: FastAPI, path: str = "/events/moves", reads: int | None = None) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.messages: list[dict[str, Any]] = []
        self.text = ""
        self._reads = reads
        self._gone = asyncio.Event()
        name, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": name,
            "raw_path": name.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:8600"), (b"accept-encoding", b"gzip")],
            "scheme": "http",
            "http_version": "1.1",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def close(self) -> None:
        """Leave the page, and wait for the end of the request."""
        self._gone.set()
        await asyncio.wait_for(self.task, DEADLINE_S)

    async def _receive(self) -> MutableMapping[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        if self._reads is not None and len(self.messages) >= self._reads:
            await asyncio.Event().wait()
        self.text += message.get("body", b"").decode()
        for line in message.get("body", b"").decode().splitlines():
            if line.startswith("data: "):
                self.messages.append(json.loads(line.removeprefix("data: ")))


def in_app(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch, test: Callable[[FastAPI], Awaitable[None]], every_s: float
) -> None:
    """Run a test inside a running application, whose pages get the time this often."""
    monkeypatch.setattr(app_module, "_EVERY_S", every_s)
    app = store.app()

    async def run() -> None:
        async with app.router.lifespan_context(app):
            await test(app)

    asyncio.run(run())


def test_a_page_gets_its_parts_and_then_those_that_change(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.throttles(LEADER)
    store.replicas(new_replica())

    async def test(app: FastAPI) -> None:
        reader = Reader(app)
        await until(lambda: len(reader.messages) >= 2)
        assert (reader.status, reader.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
        # A stream that is compressed comes in blocks.
        assert "content-encoding" not in reader.headers
        # A proxy would do so too, or wait for more.
        assert reader.headers["x-accel-buffering"] == "no"
        assert {"no-cache", "no-transform"} <= set(reader.headers["cache-control"].split(", "))
        assert reader.text.startswith("retry: 2000\n\n")
        assert reader.messages[0]["regions"].keys() == {"said", "headline", "views", "times", "content"}
        assert reader.messages[0]["now_ms"] == TICK_MS
        assert reader.messages[1]["regions"] == {}
        seen = len(reader.messages)
        await asyncio.to_thread(store.alerts, event(summary="a new alert"))
        await until(lambda: any(message["regions"] for message in reader.messages[seen:]))
        (changed,) = [message["regions"] for message in reader.messages[seen:] if message["regions"]]
        # Moves has no alerts in its content.
        assert changed.keys() == {"said", "headline"}
        assert changed["said"].startswith("critical: At the throttles in force the moves are done in")
        assert "a new alert." in changed["headline"]
        await reader.close()

    in_app(store, monkeypatch, test, every_s=DEADLINE_S)


def test_a_tick_reaches_a_page_at_once(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.throttles(LEADER)
    store.replicas(new_replica())

    async def test(app: FastAPI) -> None:
        reader = Reader(app)
        await until(lambda: len(reader.messages) >= 2)
        # In the order of a watch: the verdicts first, which are read before the new replicas come.
        seen = len(reader.messages)
        await asyncio.to_thread(store.throttles, LEADER, tick_ms=TICK_MS + 1000)
        await until(lambda: len(reader.messages) > seen)
        await asyncio.to_thread(store.replicas, new_replica(7, topic="new"), tick_ms=TICK_MS + 1000)
        # Well before the page would get the time.
        shown = until(lambda: "new-7" in reader.messages[-1]["regions"].get("content", ""))
        await asyncio.wait_for(shown, DEADLINE_S / 2)
        await reader.close()

    in_app(store, monkeypatch, test, every_s=DEADLINE_S)


def headlines(reader: Reader, first: int) -> str:
    return "".join(message["regions"].get("headline", "") for message in reader.messages[first:])


def test_a_table_that_becomes_unreadable_and_readable_again_is_said_on_the_page(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.throttles(LEADER)
    (file,) = (store.path / THROTTLE_HEADROOM.path).rglob("*.parquet")
    kept = file.read_bytes()

    async def test(app: FastAPI) -> None:
        reader = Reader(app, "/events/throttles")
        await until(lambda: len(reader.messages) >= 1)
        assert "broker 1 as leader" in reader.messages[0]["regions"]["content"]
        file.write_bytes(b"PAR1")
        await until(lambda: "cannot be read" in headlines(reader, 0))
        file.write_bytes(kept)
        seen = len(reader.messages)
        await until(lambda: "Partitions are in a reassignment" in headlines(reader, seen))
        await reader.close()

    in_app(store, monkeypatch, test, every_s=0.05)


def test_a_reader_that_does_not_read_is_dropped(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_SLOW_S", 0.1)
    monkeypatch.setattr(stream_module, "_MOST_STREAMS", 1)
    store.throttles(LEADER)

    async def test(app: FastAPI) -> None:
        slow = Reader(app, reads=1)
        await asyncio.wait_for(slow.task, DEADLINE_S)
        assert len(slow.messages) == 1
        # Its place is free.
        after = Reader(app)
        await until(lambda: len(after.messages) >= 1 or after.task.done())
        assert after.status == 200
        await after.close()

    in_app(store, monkeypatch, test, every_s=0.01)


def test_more_than_the_most_streams_are_refused_until_one_ends(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "_MOST_STREAMS", 2)
    store.throttles(LEADER)

    async def test(app: FastAPI) -> None:
        readers = [Reader(app), Reader(app, "/events/lag")]
        await until(lambda: all(reader.messages for reader in readers))
        refused = Reader(app)
        await until(refused.task.done)
        assert refused.status == 503
        assert "2 pages are open; close one." in refused.text
        await readers[0].close()
        after = Reader(app)
        await until(lambda: len(after.messages) >= 1 or after.task.done())
        assert after.status == 200
        await readers[1].close()
        await after.close()

    in_app(store, monkeypatch, test, every_s=0.05)


def test_streams_that_begin_at_the_same_time_are_not_more_than_the_most(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "_MOST_STREAMS", 2)
    store.throttles(LEADER)

    async def test(app: FastAPI) -> None:
        readers = [Reader(app) for _ in range(8)]
        await until(lambda: all(reader.task.done() or reader.messages for reader in readers))
        assert sum(bool(reader.messages) for reader in readers) == 2
        for reader in readers:
            await reader.close()

    in_app(store, monkeypatch, test, every_s=0.05)


def test_streams_end_with_the_server(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.throttles(LEADER)

    async def test(app: FastAPI) -> None:
        reader = Reader(app)
        await until(lambda: len(reader.messages) >= 2)
        app.state.end_streams()
        await asyncio.wait_for(reader.task, DEADLINE_S / 2)

    in_app(store, monkeypatch, test, every_s=DEADLINE_S)


def test_a_stream_of_a_wrong_address_is_refused(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(app: FastAPI) -> None:
        for path, code in (("/events/moves?page=0", 422), ("/events/nosuch", 404)):
            reader = Reader(app, path)
            await until(reader.task.done)
            assert reader.status == code

    in_app(store, monkeypatch, test, every_s=1.0)


# Open tables


def ticks(tables: OpenTables) -> list[int] | None:
    rows = tables.rows(THROTTLE_HEADROOM, TICKS_SQL)
    return None if rows is None else [row["tick_ms"] - TICK_MS for row in rows]


@pytest.fixture
def tables(store: DashboardStore) -> OpenTables:
    """Return the tables of a store without any."""
    return OpenTables(str(store.path))


def test_a_table_that_is_missing_has_no_rows_until_it_appears(store: DashboardStore, tables: OpenTables) -> None:
    assert (ticks(tables), tables.version(THROTTLE_HEADROOM)) == (None, None)
    store.throttles(LEADER)
    assert (ticks(tables), tables.version(THROTTLE_HEADROOM)) == ([0], 1)


def test_a_commit_is_read_by_the_next_query(store: DashboardStore, tables: OpenTables) -> None:
    store.throttles(LEADER)
    assert ticks(tables) == [0]
    store.throttles(LEADER, tick_ms=TICK_MS + 1)
    assert (ticks(tables), tables.version(THROTTLE_HEADROOM)) == ([0, 1], 2)


def test_a_query_that_takes_long_keeps_no_other_one_from_its_table(
    store: DashboardStore, tables: OpenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.throttles(LEADER)
    began, ends = threading.Event(), threading.Event()

    def slow(session: QueryBuilder, sql: str) -> list[dict[str, Any]]:
        began.set()
        assert ends.wait(DEADLINE_S)
        return delta_query.answer(session, sql)

    monkeypatch.setattr(delta_query, "long_answer", slow)
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(tables.long_records, THROTTLE_HEADROOM, TICKS_SQL, lambda row: row["tick_ms"] - TICK_MS)
        try:
            assert began.wait(DEADLINE_S)
            store.throttles(LEADER, tick_ms=TICK_MS + 1)
            assert pool.submit(tables.version, THROTTLE_HEADROOM).result(timeout=DEADLINE_S / 2) == 2
            assert pool.submit(ticks, tables).result(timeout=DEADLINE_S / 2) == [0, 1]
        finally:
            ends.set()
        # It has the table of when it began.
        assert reading.result(timeout=DEADLINE_S) == [0]


def test_a_long_query_has_the_rows_of_a_usual_one(store: DashboardStore) -> None:
    store.throttles(LEADER, status(3, Role.FOLLOWER, None, None))
    opened = {"data": store.opened(THROTTLE_HEADROOM)}
    sql = "SELECT broker, throttle_bytes_per_s, partitions, switches, stall FROM data ORDER BY broker"
    usual = delta_query.answer(delta_query.session_of(opened, {}), sql)
    long = delta_query.long_answer(delta_query.session_of(opened, {}), sql)
    assert [row["broker"] for row in usual] == [1, 3]
    assert sorted(long, key=lambda row: int(row["broker"])) == usual


def test_a_table_that_is_compacted_and_vacuumed_under_it_is_read(store: DashboardStore, tables: OpenTables) -> None:
    for n in range(3):
        store.throttles(LEADER, tick_ms=TICK_MS + n)
    assert ticks(tables) == [0, 1, 2]
    opened = store.opened(THROTTLE_HEADROOM)
    opened.optimize.compact()
    opened.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    opened.create_checkpoint()
    assert len(opened.file_uris()) == 1
    assert ticks(tables) == [0, 1, 2]
    store.throttles(LEADER, tick_ms=TICK_MS + 3)
    assert ticks(tables) == [0, 1, 2, 3]


@pytest.mark.parametrize("commits", [1, 3, 6])
@pytest.mark.parametrize("is_read_between", [True, False])
def test_a_table_that_is_deleted_and_made_again_has_its_new_rows(
    store: DashboardStore, tables: OpenTables, commits: int, is_read_between: bool
) -> None:
    for n in range(3):
        store.throttles(LEADER, tick_ms=TICK_MS + n)
    assert ticks(tables) == [0, 1, 2]
    shutil.rmtree(store.path / THROTTLE_HEADROOM.path)
    if is_read_between:
        assert ticks(tables) is None
    for n in range(commits):
        store.throttles(LEADER, tick_ms=TICK_MS + 10 + n)
    assert ticks(tables) == [10 + n for n in range(commits)]
    assert tables.version(THROTTLE_HEADROOM) == commits


def test_a_damaged_table_is_said_and_read_again_once_it_is_repaired(store: DashboardStore, tables: OpenTables) -> None:
    store.throttles(LEADER)
    (file,) = (store.path / THROTTLE_HEADROOM.path).rglob("*.parquet")
    kept = file.read_bytes()
    file.write_bytes(kept[:100])
    for _ in range(2):
        with pytest.raises(HeadroomError, match="is damaged"):
            ticks(tables)
    file.write_bytes(kept)
    assert ticks(tables) == [0]


def test_many_threads_read_while_another_process_writes(store: DashboardStore, tables: OpenTables) -> None:
    store.throttles(LEADER)
    written = threading.Event()

    def read() -> list[int]:
        counts: list[int] = []
        while not written.is_set() or not counts:
            counts.append(len(ticks(tables) or ()))
        return [*counts, len(ticks(tables) or ())]

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read) for _ in range(8)]
        for n in range(1, 21):
            store.throttles(LEADER, tick_ms=TICK_MS + n)
            if n == 10:
                opened = store.opened(THROTTLE_HEADROOM)
                opened.optimize.compact()
                opened.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        written.set()
        for reader in readers:
            counts = reader.result(timeout=DEADLINE_S)
            # What was read once is not lost, and all is there in the end.
            assert counts == sorted(counts)
            assert counts[-1] == 21
