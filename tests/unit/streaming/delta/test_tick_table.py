"""Tables of ticks that several processes write: each tick once, whoever writes it, whatever happens meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Tick
from headroom.schemas.tables import PARTITION_WRITE_RATE, THROTTLE_HEADROOM, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.maintenance import maintain_prompt
from headroom.streaming.delta.query import rows as query
from headroom.streaming.delta.schema import delta_schema
from headroom.streaming.delta.tick_table import TickTable, day_of
from headroom.streaming.durability.mend import mend
from tests.unit.builders.gold_rows import gold_row

BEGIN_MS = 1_800_000_000_000
DAY = 86_400_000


def tick(number: int, cluster: str = "c1") -> Tick:
    return cluster, BEGIN_MS + 1000 * number


def made(folder: Path, table: Table = PARTITION_WRITE_RATE) -> str:
    path = str(folder / table.path)
    delta_append.create(path, table)
    return path


def rows_of(ticks: Sequence[Tick], table: Table = PARTITION_WRITE_RATE) -> dict[Tick, list[dict[str, Any]]]:
    """Two rows of each tick."""
    return {one: [gold_row(table, one, partition=n) for n in range(2)] for one in ticks}


def stored(path: str) -> dict[Tick, int]:
    """Ticks in a table, with their numbers of rows."""
    found = query({"data": path}, 'SELECT "cluster", tick_ms FROM data')
    return dict(Counter((row["cluster"], row["tick_ms"]) for row in found))


def test_a_row_is_read_back_as_it_was_with_all_that_is_nested(tmp_path: Path) -> None:
    path = made(tmp_path, THROTTLE_HEADROOM)
    full = gold_row(THROTTLE_HEADROOM, tick(0))
    nothing = full | {name: None for name in full if name not in ("cluster", "tick_ms", "broker", "role")}
    empty = nothing | {"broker": 4, "partitions": [], "lost": [], "stalls": [full["stalls"][0] | {"partitions": []}]}
    next_day = tick(DAY // 1000)
    nothing["tick_ms"] = next_day[1]
    TickTable(path, THROTTLE_HEADROOM).append({tick(0): [full, empty], next_day: [nothing]})
    found = query({"data": path}, "SELECT * FROM data ORDER BY date, broker")
    assert [row.pop("date") for row in found] == [date(2027, 1, 15), date(2027, 1, 15), date(2027, 1, 16)]
    assert found == [full, empty, nothing]


def test_a_tick_is_written_once(tmp_path: Path) -> None:
    path = made(tmp_path)
    first, second = TickTable(path, PARTITION_WRITE_RATE), TickTable(path, PARTITION_WRITE_RATE)
    first.append(rows_of([tick(1), tick(2)]))
    # Another process, a repetition, an earlier tick, and the same time in another cluster.
    second.append(rows_of([tick(2), tick(3)]))
    first.append(rows_of([tick(1), tick(3), tick(0)]))
    second.append(rows_of([tick(3, "c2"), tick(0)]))
    assert stored(path) == dict.fromkeys([tick(0), tick(1), tick(2), tick(3), tick(3, "c2")], 2)
    assert second.missing([tick(0), tick(4), tick(0, "c2")]) == {tick(4), tick(0, "c2")}
    commits = DeltaTable(path).version()
    first.append(rows_of([tick(1)]))
    first.append({tick(9): []})
    assert DeltaTable(path).version() == commits


class Rival:
    """Lets another process append just before a commit."""

    def __init__(self, path: str, monkeypatch: pytest.MonkeyPatch, rows: dict[Tick, list[dict[str, Any]]]) -> None:
        self._path, self._rows = path, rows
        self.commits = 0
        self._append = delta_append.write_deltalake
        monkeypatch.setattr(delta_append, "write_deltalake", self.write)

    def write(self, *of: Any, **more: Any) -> None:
        self.commits += 1
        rows, self._rows = self._rows, {}
        if rows:
            TickTable(self._path, PARTITION_WRITE_RATE).append(rows)
        self._append(*of, **more)


@pytest.mark.parametrize("theirs", [[tick(1)], [tick(1), tick(2)], [tick(7)]])
def test_what_another_process_commits_at_the_same_time_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: list[Tick]
) -> None:
    path = made(tmp_path)
    table = TickTable(path, PARTITION_WRITE_RATE)
    table.append(rows_of([tick(0)]))
    Rival(path, monkeypatch, rows_of(theirs))
    table.append(rows_of([tick(1), tick(2)]))
    assert stored(path) == dict.fromkeys({tick(0), tick(1), tick(2), *theirs}, 2)


def test_a_compaction_at_the_same_time_disturbs_no_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path)
    table = TickTable(path, PARTITION_WRITE_RATE)
    for number in range(3):
        table.append(rows_of([tick(number)]))
    rival = Rival(path, monkeypatch, {})
    monkeypatch.setattr(rival, "_rows", {tick(0): []})
    original = TickTable.append

    def compact(one: TickTable, rows: Any) -> None:
        if rows == {tick(0): []}:
            maintain_prompt(path, PARTITION_WRITE_RATE, 1)
        else:
            original(one, rows)

    monkeypatch.setattr(TickTable, "append", compact)
    original(table, rows_of([tick(3)]))
    # One attempt, because a compaction is no other append.
    assert rival.commits == 1
    assert stored(path) == dict.fromkeys(map(tick, range(4)), 2)


def test_an_append_whose_answer_was_lost_is_not_repeated(tmp_path: Path) -> None:
    path = made(tmp_path)
    table = TickTable(path, PARTITION_WRITE_RATE)

    def write(opened: DeltaTable, ticks: frozenset[Tick], once: CommitProperties) -> None:
        records = [row | {"date": day_of(at)} for one in ticks for row in rows_of([one])[one] for at in [one[1]]]
        columns = {name: [record[name] for record in records] for name in PARTITION_WRITE_RATE.names()}
        delta_append.append_columns(opened, columns, once)
        raise OSError("the mount is gone")

    with pytest.raises(OSError, match="mount"):
        table.commit([tick(1)], write)
    table.append(rows_of([tick(1), tick(2)]))
    assert stored(path) == {tick(1): 2, tick(2): 2}


@pytest.mark.parametrize("commits", [1, 3, 6])
def test_writers_go_on_with_a_table_that_was_created_again_beside_them(tmp_path: Path, commits: int) -> None:
    path = made(tmp_path)
    writer, repaired = TickTable(path, PARTITION_WRITE_RATE), TickTable(path, PARTITION_WRITE_RATE)
    for number in range(3):
        writer.append(rows_of([tick(number)]))
    shutil.rmtree(Path(path, "_delta_log"))
    with pytest.raises(Exception, match="_delta_log"):
        writer.append(rows_of([tick(3)]))
    assert mend(path)
    for number in range(10, 10 + commits):
        repaired.append(rows_of([tick(number)]))
    for _ in range(2):
        with suppress(Exception):
            writer.append(rows_of([tick(0), tick(3)]))
    assert stored(path) == dict.fromkeys([tick(0), tick(3), *map(tick, range(10, 10 + commits))], 2)


def test_a_slow_process_loses_many_races_and_writes_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path)
    monkeypatch.setattr(delta_append, "_BETWEEN_CONFLICTS_S", 0.001)
    left = [CommitFailedError("again")] * 50

    def write(opened: DeltaTable, ticks: frozenset[Tick], once: CommitProperties) -> None:
        if left:
            raise left.pop()
        written.append(ticks)

    written: list[frozenset[Tick]] = []
    TickTable(path, PARTITION_WRITE_RATE).commit([tick(1)], write)
    assert written == [{tick(1)}]


def test_a_table_that_changes_at_every_attempt_gives_up_with_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path)
    monkeypatch.setattr("headroom.streaming.delta.tick_table._AGAIN_FOR_S", 0.3)

    def write(opened: DeltaTable, ticks: frozenset[Tick], once: CommitProperties) -> None:
        raise CommitFailedError("again")

    with pytest.raises(CommitFailedError):
        TickTable(path, PARTITION_WRITE_RATE).commit([tick(1)], write)
    assert stored(path) == {}


def test_ticks_are_known_from_the_log_after_its_checkpoints_too(tmp_path: Path) -> None:
    path = made(tmp_path)
    table = TickTable(path, PARTITION_WRITE_RATE)
    for number in range(103):
        table.append(rows_of([tick(number)]))
    assert list(Path(path, "_delta_log").glob("*.checkpoint*.parquet"))
    TickTable(path, PARTITION_WRITE_RATE).append(rows_of([tick(0), tick(102), tick(103)]))
    table.append(rows_of([tick(103), tick(104)]))
    assert stored(path) == dict.fromkeys(map(tick, range(105)), 2)


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headroom.streaming.delta.tick_table._MOST_KNOWN", 3)
    path = made(tmp_path)
    table = TickTable(path, PARTITION_WRITE_RATE)
    for number in range(9):
        table.append(rows_of([tick(number)]))
        assert len(table._known) <= 4
    table.append(rows_of([tick(0)]))
    assert stored(path) == dict.fromkeys(map(tick, range(9)), 2)


def test_a_column_of_a_newer_version_is_null(tmp_path: Path) -> None:
    path = str(tmp_path / "newer")
    fields = list(delta_schema(PARTITION_WRITE_RATE).fields)
    newer = Schema([*fields[:3], Field("not_yet_known", PrimitiveType("string")), *fields[3:]])
    delta_append.create(path, PARTITION_WRITE_RATE, newer)
    TickTable(path, PARTITION_WRITE_RATE).append(rows_of([tick(0)]))
    assert [row["not_yet_known"] for row in query({"data": path}, "SELECT * FROM data")] == [None, None]


def test_a_location_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("a file")
    with pytest.raises(HeadroomError):
        TickTable(str(tmp_path / "gold"), PARTITION_WRITE_RATE).append(rows_of([tick(0)]))


STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "new", "compact"]), st.sets(st.integers(0, 9), min_size=1, max_size=4)),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_each_tick_is_stored_once_for_any_order_of_writers(steps: list[tuple[str, set[int]]]) -> None:
    with TemporaryDirectory() as folder:
        path = made(Path(folder))
        writers = {name: TickTable(path, PARTITION_WRITE_RATE) for name in ("a", "b")}
        expected: set[Tick] = set()
        for name, numbers in steps:
            if name == "compact":
                maintain_prompt(path, PARTITION_WRITE_RATE, 1)
                continue
            ticks = [tick(n, f"c{n % 2}") for n in numbers]
            # A restart knows nothing of before.
            writer = writers.get(name) or TickTable(path, PARTITION_WRITE_RATE)
            writer.append(rows_of(ticks))
            expected |= set(ticks)
        assert stored(path) == dict.fromkeys(expected, 2)


_WRITER = """
import random, sys
from headroom.schemas.tables import PARTITION_WRITE_RATE
from headroom.streaming.delta.tick_table import TickTable
from tests.unit.streaming.delta.test_tick_table import rows_of, tick
shuffled = random.Random(int(sys.argv[2]))
table = TickTable(sys.argv[1], PARTITION_WRITE_RATE)
for number in range(40):
    table.append(rows_of([tick(number + shuffled.randint(0, 3)), tick(number)]))
"""


def test_processes_that_race_for_the_same_ticks_beside_maintenance_double_and_lose_none(tmp_path: Path) -> None:
    path = made(tmp_path)
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, path, str(n)]) for n in range(2)]
    while any(writer.poll() is None for writer in writers):
        maintain_prompt(path, PARTITION_WRITE_RATE, 20)
    assert [writer.returncode for writer in writers] == [0, 0]
    found = stored(path)
    assert set(found.values()) == {2}
    assert set(map(tick, range(40))) <= found.keys() <= set(map(tick, range(43)))


def test_the_day_of_a_tick_is_that_of_utc() -> None:
    assert day_of(int(datetime(2027, 1, 15, 23, 59, 59, tzinfo=timezone.utc).timestamp() * 1000)) == date(2027, 1, 15)


def test_maintenance_writes_no_transaction_of_the_writers(tmp_path: Path) -> None:
    path = made(tmp_path)
    table = TickTable(path, PARTITION_WRITE_RATE)
    for number in range(2):
        table.append(rows_of([tick(number)]))
    maintain_prompt(path, PARTITION_WRITE_RATE, 1)
    last = max(Path(path, "_delta_log").glob("*.json"))
    assert not [line for line in last.read_text().splitlines() if "txn" in json.loads(line)]
