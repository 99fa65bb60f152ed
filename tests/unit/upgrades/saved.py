"""What an earlier version has saved (``tests/saved``), as tables of a store and as clusters in memory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.run.journal import list_of_subject, rate_of_subject, replica_of_subject
from headroom.schemas.keys import BrokerRate, ReplicaKey
from headroom.schemas.tables import ACTION_JOURNAL, Table
from headroom.streaming.delta.append import append_columns
from tests.support.paths import REPOSITORY
from tests.unit.builders.live_commands import let_commands_open
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

SAVED = REPOSITORY / "tests" / "saved" / "e163f2d"
PLANS = SAVED / "plans"
_LOOKS = 1


def rows_of(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAVED / file).read_text().splitlines()]


def save(store: Path, table: Table, rows: list[dict[str, Any]]) -> None:
    """Put a table into a store as the earlier version has made it, with rows of it."""
    path = store / table.path
    shutil.copytree(SAVED / "tables" / table.path, path)
    if rows:
        append_columns(DeltaTable(str(path)), {name: [row[name] for row in rows] for name in rows[0]})


def save_journal(store: Path, name: str, without: str = "") -> None:
    """Put the journal of a scene into a store, without the rows of one of its commands."""
    save(store, ACTION_JOURNAL, [row for row in rows_of(f"journals/{name}.jsonl") if row["command"] != without])


def scene(
    name: str, monkeypatch: pytest.MonkeyPatch, folder: Path, journal: str = "", without: str = ""
) -> FakeReassignedCluster:
    """Let commands run on the cluster of a kill, with its journal, in a folder with the plans.

    They run on the machine on which the runs were begun. The rows of one command can be left out of the journal.
    """
    fake = cluster_of(name)
    let_commands_open(fake, monkeypatch, folder)
    monkeypatch.setattr("headroom.operations.journal.session.socket.gethostname", lambda: "host1")
    shutil.copytree(PLANS, folder, dirs_exist_ok=True)
    save_journal(folder / "store", journal or name, without)
    return fake


def cluster_of(name: str) -> FakeReassignedCluster:
    """The cluster of a scene, in which what moves ends with the next look."""
    saved = json.loads((SAVED / "clusters" / f"{name}.json").read_text())
    partitions = [
        PartitionPlacement(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in saved["partitions"]
    ]
    return FakeReassignedCluster(
        {p.name: p for p in partitions},
        {1, 2, 3, 4},
        rates={_rate(f"broker {broker} as {role}"): rate for broker, role, rate in saved["rates"]},
        lists={name: text for subject, text in saved["lists"].items() if (name := list_of_subject(subject))},
        left={p.name: _LOOKS for p in partitions if p.moving},
        paths={_replica(subject): path for subject, path in saved["paths"].items()},
        looks=_LOOKS,
        futures={_replica(subject): (path, _LOOKS) for subject, (path, _) in saved["futures"].items()},
    )


def _rate(subject: str) -> BrokerRate:
    rate = rate_of_subject(subject)
    assert rate is not None
    return rate


def _replica(subject: str) -> ReplicaKey:
    replica = replica_of_subject(subject)
    assert replica is not None
    return replica
