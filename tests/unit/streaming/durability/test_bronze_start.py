"""With a new checkpoint the topic is read on after the records that bronze has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from headroom.schemas.config import KafkaSettings
from headroom.schemas.tables import BRONZE_TICKS
from headroom.streaming.delta import append as delta_append
from headroom.streaming.durability.bronze_start import BronzeStart, PartitionStart, read_bronze_start
from headroom.streaming.queries import bronze_query
from headroom.streaming.queries.bronze_query import BronzeQuery
from headroom.streaming.sources.kafka_options import kafka_options
from headroom.streaming.sources.ticks_topic import TicksTopic

HOUR_MS = 3_600_000
AT_MS = 1_800_000_000_000


def bronze_with(root: Path, records: Sequence[tuple[str, int, int, int]]) -> Path:
    """A bronze table with records: topic, partition, offset, time in milliseconds."""
    path = root / BRONZE_TICKS.path
    delta_append.create(str(path), BRONZE_TICKS)
    values = ", ".join(f"('{topic}', {partition}, {offset}, {at_ms})" for topic, partition, offset, at_ms in records)
    chosen = {
        "topic": "t.column1",
        "partition": "arrow_cast(t.column2, 'Int32')",
        "offset": "t.column3",
        "timestamp": "arrow_cast(to_timestamp_millis(t.column4), 'Timestamp(Microsecond, Some(\"UTC\"))')",
        "date": "CAST(to_timestamp_millis(t.column4) AS DATE)",
    }
    opened = DeltaTable(str(path))
    types = {field.name: field.type for field in opened.schema().fields}
    casts = {"binary": "Binary", "string": "Utf8", "integer": "Int32", "long": "Int64"}
    columns = [
        f'{chosen[name]} AS "{name}"'
        if name in chosen
        else f"arrow_cast(NULL, '{casts[str(types[name].type)]}') AS \"{name}\""
        for name in BRONZE_TICKS.names()
    ]
    builder = QueryBuilder().register("data", opened)
    rows = builder.execute(f"SELECT {', '.join(columns)} FROM (VALUES {values}) AS t").read_all()
    write_deltalake(opened, rows, mode="append")
    return path


def test_each_partition_continues_after_its_newest_record(tmp_path: Path) -> None:
    records = [("ticks", p, offset, AT_MS + 1000 * offset) for p in (0, 1) for offset in range(3 + p)]
    start = read_bronze_start(str(bronze_with(tmp_path, [*records, ("other", 0, 99, AT_MS)])), "ticks")
    assert start == BronzeStart({0: PartitionStart(3, AT_MS + 2000), 1: PartitionStart(4, AT_MS + 3000)})
    assert start.since_ms == AT_MS + 2000 - HOUR_MS
    assert BronzeStart.of_json(start.as_json()) == start
    assert start.condition() == (
        f"CASE partition WHEN 0 THEN offset >= 3 OR timestamp > timestamp_millis({AT_MS + 2000}) "
        f"WHEN 1 THEN offset >= 4 OR timestamp > timestamp_millis({AT_MS + 3000}) ELSE true END"
    )


def test_the_offsets_of_a_topic_that_was_created_again_count(tmp_path: Path) -> None:
    before = [("ticks", 0, offset, AT_MS + offset) for offset in range(50, 60)]
    after = [("ticks", 0, offset, AT_MS + HOUR_MS + offset) for offset in range(4)]
    start = read_bronze_start(str(bronze_with(tmp_path, [*before, *after])), "ticks")
    assert start == BronzeStart({0: PartitionStart(4, AT_MS + HOUR_MS + 3)})


def test_clocks_that_differ_leave_no_record_out_and_repeat_none(tmp_path: Path) -> None:
    # The collector of a second cluster is a minute behind, and sent last.
    records = [("ticks", 0, 0, AT_MS), ("ticks", 0, 1, AT_MS - 60_000)]
    assert read_bronze_start(str(bronze_with(tmp_path, records)), "ticks") == BronzeStart({0: PartitionStart(2, AT_MS)})


def test_without_records_the_topic_is_read_from_its_beginning(tmp_path: Path) -> None:
    assert read_bronze_start(str(tmp_path / "none"), "ticks") is None
    path = bronze_with(tmp_path, [("other", 0, 99, AT_MS)])
    assert read_bronze_start(str(path), "ticks") is None
    assert BronzeStart.of_json({}) is None


def test_a_later_process_leaves_the_same_records_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bronze_with(tmp_path, [("ticks", 0, 7, AT_MS)])
    spark, reader = MagicMock(), MagicMock()
    spark.readStream.format.return_value.options.return_value = reader
    reader.option.return_value = reader
    monkeypatch.setattr(bronze_query, "bronze", lambda records: MagicMock())
    store = MagicMock()
    store.location = lambda table: str(tmp_path / table.path)
    for batches in range(2):
        reader.reset_mock()
        topic = TicksTopic(spark, "ticks", lambda: kafka_options(KafkaSettings("b:1"), None))
        BronzeQuery(MagicMock(), topic, store, str(tmp_path / "checkpoints" / "bronze"), 1.0, 1.0)._writer()
        options = dict(call.args for call in reader.option.call_args_list)
        assert options["startingTimestamp"] == AT_MS - HOUR_MS
        reader.load.return_value.where.assert_called_once()
        assert "offset >= 8" in reader.load.return_value.where.call_args.args[0]
        offsets = tmp_path / "checkpoints" / "bronze" / "offsets"
        offsets.mkdir(exist_ok=True)
        (offsets / str(batches)).write_text("v1\n{}\n{}")
