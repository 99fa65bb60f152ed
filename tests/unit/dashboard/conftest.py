"""What tests of the page share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headroom.dashboard.acting.actions import Actions
from headroom.schemas.keys import Role
from tests.unit.builders.acting import RAISE, Clock, Program, acting
from tests.unit.builders.dashboard_store import Client, DashboardStore, event
from tests.unit.builders.throttle_status import status


@pytest.fixture
def store(tmp_path: Path) -> DashboardStore:
    """Return a store without any table."""
    return DashboardStore(tmp_path / "store")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path / "program")
    yield program
    program.waits(False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def actions(store: DashboardStore, program: Program, clock: Clock) -> Actions:
    store.path.mkdir()
    return Actions(str(store.path), program.command_line, clock)


@pytest.fixture
def client(store: DashboardStore, program: Program, clock: Clock) -> Client:
    """Return a client with a session; a watch evaluates its cluster, which has an alert with a command."""
    store.throttles(status(1, Role.LEADER, 12, 10))
    recommendation = json.dumps({"reason": "it is too low", "commands": [RAISE, "kafka-configs.sh --alter"]})
    store.alerts(event("a", recommendation=recommendation))
    return acting(store, program, clock)
