"""The journal is read only while throttles are left behind, and never stops an alert."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headroom.planning.reassignments.run.journal import JournalRow
from headroom.schemas.alerts import AlertEvent, AlertKind
from headroom.schemas.config import StoreSettings
from headroom.streaming.store.single_instance import exclusive_jobs, run_job, run_process
from headroom.streaming.tables.journal import ActionJournal
from headroom.streaming.tables.throttle_owners import Owners, ThrottleOwnersFollower

RATE = "broker 2 as leader"


def event(cluster: str, kind: AlertKind) -> AlertEvent:
    return AlertEvent("id", kind.value, "warning", "pending", cluster, "throttles", "", "{}", "{}", 1, 1)


def row(cluster: str, run_id: str, step: str, subject: str, after: str, seq: int) -> JournalRow:
    return JournalRow(run_id, seq, cluster, "reassign run", step, "intended", subject, None, after, "anna@host", seq)


@dataclass
class Watch:
    """A follower of the journals of two clusters, with its clock and what it passed on."""

    store: Path
    now_ms: int = 0
    events: list[AlertEvent] = field(default_factory=list)
    passed: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    processes: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        stores = {"orders": str(self.store), "payments": str(self.store / "none")}
        self.follower = ThrottleOwnersFollower(stores, lambda: self.events, self.take, lambda: self.now_ms, run_process)

    def take(self, cluster: str, owners: Owners) -> None:
        self.passed.append((cluster, {subject: owner.run_id for subject, owner in owners.items()}))
        self.processes += [owner.process for owner in owners.values()]


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    ActionJournal(str(tmp_path / "store")).append(
        [
            row("orders", "r-1", "run", "fingerprint", "{}", 1),
            row("orders", "r-1", "rate", RATE, "5", 2),
            row("payments", "r-2", "rate", RATE, "5", 1),
            row("orders", "r-1", "submit", "t-0", "[1]", 3),
        ]
    )
    return Watch(tmp_path / "store")


def test_it_is_not_read_without_such_an_alert(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.events = [event("orders", AlertKind.REASSIGNMENT_STALLED), event("unknown", AlertKind.THROTTLE_LEFT_BEHIND)]
    monkeypatch.setattr(ActionJournal, "rows", None)
    watch.follower.poll()
    assert watch.passed == []


def test_the_owners_are_passed_on_while_there_is_one_once_a_minute(watch: Watch) -> None:
    watch.events = [event("orders", AlertKind.THROTTLE_LEFT_BEHIND)]
    for watch.now_ms in (0, 3_000, 59_000, 60_000):
        watch.follower.poll()
    assert watch.passed == [("orders", {RATE: "r-1"})] * 2
    watch.events = []
    watch.follower.poll()
    watch.follower.poll()
    assert watch.passed[2:] == [("orders", {})]


def test_a_run_that_a_process_carries_on_has_that_process(watch: Watch) -> None:
    watch.events = [event("orders", AlertKind.THROTTLE_LEFT_BEHIND)]
    with exclusive_jobs(StoreSettings(path=str(watch.store)), [run_job("orders")]):
        watch.follower.poll()
    watch.now_ms = 60_000
    watch.follower.poll()
    during, after = watch.processes
    assert f"pid {os.getpid()} on host " in (during or "")
    assert after is None


def test_a_cluster_without_a_journal_has_no_owners(watch: Watch) -> None:
    watch.events = [event("payments", AlertKind.THROTTLE_LEFT_BEHIND)]
    watch.follower.poll()
    assert watch.passed == [("payments", {})]


def test_a_journal_that_cannot_be_read_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "store").write_text("a file")
    watch = Watch(tmp_path / "store", events=[event("orders", AlertKind.THROTTLE_LEFT_BEHIND)])
    for watch.now_ms in (0, 60_000):
        watch.follower.poll()
    assert (watch.passed, len(caplog.messages)) == ([], 1)
    assert "who set the throttles of orders is unknown" in caplog.messages[0]
