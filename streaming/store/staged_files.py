"""Parquet files of a table on a local disk that Spark writes, and the Delta library commits.

A commit by Spark could overwrite one that another process makes by the library at the same time.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import defaultdict
from collections.abc import Collection
from datetime import date
from pathlib import Path

from deltalake import DeltaTable
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headroom.schemas.keys import Tick
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.tick_table import day_of
from headroom.streaming.transforms.tick_status import in_ticks


class StagedFiles:
    """Files of one table, written and not yet committed.

    Args:
        path: folder of the table, which must exist before the first call.
        writer: name of the only job that writes there; another one has a folder of its own.
    """

    def __init__(self, path: str, writer: str) -> None:
        # With its scheme: the default file system of a Spark cluster may be another one.
        self._table = Path(path).absolute()
        # Readers and maintenance ignore folders with this first letter.
        self._folder = self._table / f"_staged_{writer}"

    def clear(self) -> None:
        """Remove what an earlier process has left."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def write(self, rows: DataFrame, ticks: Collection[Tick]) -> list[AddAction]:
        """Write rows to one file per day, and return the actions that add the files to the table.

        Args:
            rows: rows of these ticks, in columns of the table.
            ticks: their ticks.
        """
        # In the table's order, also within structs. A newer version may have added columns.
        in_order = rows.to(StructType.fromJson(json.loads(DeltaTable(str(self._table)).schema().to_json())))
        days: dict[date, list[Tick]] = defaultdict(list)
        for tick in sorted(ticks):
            days[day_of(tick[1])].append(tick)
        written = [
            self._write_day(in_order if len(days) == 1 else in_order.where(in_ticks(of_day)), day, of_day)
            for day, of_day in days.items()
        ]
        return [action for action in written if action is not None]

    def _write_day(self, rows: DataFrame, day: date, ticks: Collection[Tick]) -> AddAction | None:
        """Write the rows of a day, and return the action; None without rows."""
        folder = self._folder / str(uuid.uuid4())
        counted = Observation()
        # The day is in the path of the file only.
        observed = rows.drop("date").observe(counted, F.count(F.lit(1)).alias("rows"))
        try:
            observed.coalesce(1).write.parquet(folder.as_uri())
            count = counted.get["rows"]
            (file,) = folder.glob("part-*.parquet")
            return self._move(file, day, ticks, count) if count else None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _move(self, file: Path, day: date, ticks: Collection[Tick], count: int) -> AddAction:
        path = f"date={day}/{file.name}"
        target = self._table / path
        target.parent.mkdir(exist_ok=True)
        file.rename(target)
        clusters, times_ms = zip(*ticks, strict=True)
        stats = {
            "numRecords": count,
            "minValues": {"cluster": min(clusters), "tick_ms": min(times_ms)},
            "maxValues": {"cluster": max(clusters), "tick_ms": max(times_ms)},
            "nullCount": {"cluster": 0, "tick_ms": 0},
        }
        return AddAction(path, target.stat().st_size, {"date": str(day)}, now_ms(), True, json.dumps(stats))
