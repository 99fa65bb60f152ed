"""Rows that are appended while another process compacts their table: none is lost, none is there twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from deltalake import DeltaTable

from schemas.tables import ALERT_EVENTS
from streaming.delta import append as plain_table
from streaming.delta.maintenance import Maintained, maintain_prompt
from streaming.delta.query import rows
from tests.unit.streaming.delta.test_damage import event

# By hand for longer: HEADROOM_RACE_APPENDS=20000 takes some minutes.
APPENDS = int(os.environ.get("HEADROOM_RACE_APPENDS", "100"))
WRITERS = 2
OLD_MS = 1_700_000_000_000
_WRITER = """
import sys
from tests.unit.streaming.delta.test_damage import event
from schemas.tables import ALERT_EVENTS
from streaming.delta import append as plain_table
from deltalake import DeltaTable
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    plain_table.append(DeltaTable(sys.argv[1]), [event(number)], ALERT_EVENTS)
"""


def test_no_row_is_lost_or_doubled_by_a_compaction_in_another_process(tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    plain_table.create(path, ALERT_EVENTS)
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, path, str(n * APPENDS), str((n + 1) * APPENDS)])
        for n in range(WRITERS)
    ]
    done: list[Maintained] = []
    while any(writer.poll() is None for writer in writers):
        done.append(maintain_prompt(path, ALERT_EVENTS, attempts=5))
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    done.append(maintain_prompt(path, ALERT_EVENTS, attempts=5))
    found = rows({"data": path}, "SELECT tick_ms FROM data ORDER BY tick_ms")
    assert [row["tick_ms"] for row in found] == list(range(WRITERS * APPENDS))
    assert DeltaTable(path).version() > WRITERS * APPENDS
    assert sum(one.files_after < one.files_before for one in done) >= 3
    assert done[-1].files_after == 1


def test_files_that_a_compaction_left_behind_are_removed_once_they_are_old(tmp_path: Path) -> None:
    path = tmp_path / "events"
    plain_table.create(str(path), ALERT_EVENTS)
    for number in range(3):
        plain_table.append(DeltaTable(str(path)), [event(number)], ALERT_EVENTS)
    maintain_prompt(str(path), ALERT_EVENTS, attempts=1)
    assert len(list(path.glob("*.parquet"))) == 4
    # Older than two hours, in the log and on the disk.
    for commit in (path / "_delta_log").glob("*.json"):
        told = commit.read_text("utf-8")
        commit.write_text(re.sub(r'"deletionTimestamp":\d+', f'"deletionTimestamp":{OLD_MS}', told), "utf-8")
    for file in path.glob("*.parquet"):
        os.utime(file, (OLD_MS / 1000, OLD_MS / 1000))
    maintain_prompt(str(path), ALERT_EVENTS, attempts=1)
    assert len(list(path.glob("*.parquet"))) == 1
    assert len(rows({"data": str(path)}, "SELECT tick_ms FROM data")) == 3
