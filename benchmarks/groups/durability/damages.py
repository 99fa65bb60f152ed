"""Group ``damages``: is every damaged file reported and repaired, while alerts still come?

Three real brokers run a throttled move that never ends, and a watch with its history writes all tables. Then, in
5 rounds (`--rounds`), the watch is stopped, six files of different tables, checkpoints and locks are damaged
at once, and the watch is started over them:

| file | what becomes of it |
|---|---|
| newest commit of a table | emptied, zeroed, cut, flipped (one bit), a folder in its place |
| checkpoint of the log, `_last_checkpoint` | cut, zeroed, flipped, a folder in its place |
| data file of events, deliveries, journal, history | cut, zeroed, flipped, removed |
| `_delta_log`, or the folder of a table | removed, a file in its place |
| offsets, commits and metadata of a streaming checkpoint | emptied, zeroed, cut, a file in the place of their folder |
| locks | zeroed, a folder in their place |

While the files are damaged, a leader starves, and its alert has to fire. Then `headroom maintain --repair` is run once,
beside the watch. The leader gets enough, and the alert has to resolve.

`damage_not_repaired` is the number of damages of which one of these is true:

- the watch did not evaluate ticks within two minutes, or the alert did not fire or did not reach a receiver; then all
  damages of the round count, because any of them may be the cause,
- neither a log line of Headroom nor the repair named the table, checkpoint or lock,
- the table or checkpoint is damaged after the repair, or the repair failed; a checkpoint is repaired by its query,
- the table cannot be read in full, or has lost more rows than the damaged file had,
- the table got no further rows after the repair, the query of the checkpoint wrote no further batch, or the lock does
  not name a process of the watch; within five minutes.

The watch is not restarted after the repair. A table that was not damaged, and is after the round, counts too.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.leaders_in_turn import INBOUND_BYTES_PER_S, PARTITIONS, LeadersInTurn
from benchmarks.faults.store_files import (
    DamagedPlace,
    PlannedDamage,
    do_damage,
    lock_owner,
    path_of,
    row_count,
)
from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.durability.schedule import ROUNDS
from benchmarks.options.fields import option
from benchmarks.results import Figure
from headroom.alerts.delivery.delivery_log import event_key
from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.parameters import WholeNumber
from headroom.cli.common.watch_output import Line
from headroom.planning.reassignments.run.journal import JournalRow, StepKind, StepState
from headroom.schemas.alerts import AlertState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ACTION_JOURNAL, ALL_TABLES
from headroom.streaming.delta.append import without_panic
from headroom.streaming.delta.damage import damages
from headroom.streaming.delta.query import rows as query
from headroom.streaming.durability.query_checkpoints import checkpoints_of
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.tables.journal import ActionJournal

_ALERTS = {"resolve_s": 0.5}
_ENOUGH_BYTES_PER_S = 4e6
_JOURNAL_ROWS = 4
_FIRST_S, _START_S, _ALERT_S, _AGAIN_S, _REPAIR_S = 300.0, 120.0, 120.0, 300.0, 180.0


@dataclass
class DamageRound:
    """What became of the damages of a round.

    Attributes:
        faults: what was wrong with each damage; an empty list: it was reported and repaired.
        elsewhere: faults of tables and checkpoints that were not damaged.
    """

    faults: dict[PlannedDamage, list[str]] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)

    def all_failed(self, fault: str) -> None:
        """Note a fault of which any damage may be the cause."""
        for faults in self.faults.values():
            faults.append(fault)


@dataclass(frozen=True)
class DamagesOptions:
    """Options of the group ``damages``."""

    rounds: int = option(len(ROUNDS), WholeNumber(1, len(ROUNDS)), "Rounds of six damages.")


def measure(on_progress: OnProgress, options: DamagesOptions) -> list[Figure]:
    """Return the number of damages that were silent, not repaired, or kept alerts from coming.

    Raises:
        HeadroomError: the tables were not written before the first damage.
    """
    rounds = ROUNDS[: options.rounds]
    played_rounds = []
    with BenchCluster(3) as bench, Receivers(bench.folder) as receivers:
        receivers.configure(bench)
        bench.add_section("alerts", _ALERTS)
        with ThrottledMove(bench, "damages", PARTITIONS) as move:
            move.start_move(_ENOUGH_BYTES_PER_S, INBOUND_BYTES_PER_S)
            stage = DamageStage(bench, receivers)
            try:
                stage.fill_tables({damage for planned in rounds for damage in planned})
                for number, planned in enumerate(rounds):
                    on_progress(f"round {number + 1} of {len(rounds)}")
                    played_rounds.append(stage.play(planned))
                    _report(played_rounds[-1], on_progress)
            finally:
                stage.stop()
    return figures(played_rounds)


def _report(played: DamageRound, on_progress: OnProgress) -> None:
    for damage, faults in played.faults.items():
        on_progress(f"    {damage}: {'; '.join(faults) or 'repaired'}")
    for fault in played.elsewhere:
        on_progress(f"    elsewhere: {fault}")


def figures(rounds: Sequence[DamageRound]) -> list[Figure]:
    """Return the figures of some rounds."""
    count = sum(len(played.faults) for played in rounds)
    failed = sum(bool(faults) for played in rounds for faults in played.faults.values())
    return [
        Figure("damage_not_repaired", failed + sum(len(played.elsewhere) for played in rounds), "damages", count),
        Figure("damage_count", count, "damages", count),
    ]


class DamageStage:
    """A watch that is stopped, whose files are damaged, and that is started again.

    Args:
        bench: the cluster; its move starves leaders.
        receivers: receivers of the watch.
    """

    def __init__(self, bench: BenchCluster, receivers: Receivers) -> None:
        self._bench = bench
        self._receivers = receivers
        self._store = Path(bench.store)
        self._checkpoints = Path(bench.settings.store.checkpoints())
        self._leaders = LeadersInTurn(bench.settings, _ENOUGH_BYTES_PER_S)
        self._journal = ActionJournal(bench.store)
        self._journalled = 0
        self._watch = bench.watch()

    def stop(self) -> None:
        """Stop the watch."""
        self._watch.stop()

    def fill_tables(self, planned: set[PlannedDamage]) -> None:
        """Return once all that will be damaged is written.

        Raises:
            HeadroomError: it was not in time.
        """
        self._watch.wait(self._watch.verdicts, _START_S, "first verdicts")
        for _ in range(_JOURNAL_ROWS):
            self._write_journal()
        self._leaders.starve()
        self._await_alert(AlertState.FIRING)
        self._leaders.restore()
        self._await_alert(AlertState.RESOLVED)
        for damage in sorted(planned, key=str):
            location = path_of(damage, self._store, self._checkpoints)
            await_true(lambda of=damage, at=location: _is_written(of, at), _FIRST_S, f"{damage} to be possible")  # type: ignore[misc]

    def play(self, planned: Sequence[PlannedDamage]) -> DamageRound:
        """Damage files, start the watch over them, repair them, and return what was wrong."""
        self._watch.stop()
        played = DamageRound({damage: [] for damage in planned})
        locations = {damage: path_of(damage, self._store, self._checkpoints) for damage in planned}
        before = {damage: row_count(at) for damage, at in locations.items() if damage.place is DamagedPlace.TABLE}
        at_risk = {damage: do_damage(damage, at) for damage, at in locations.items()}
        log_from, began_s = self._log_size(), time.time()
        self._watch = self._bench.watch()
        # The next leader, because an alert that soon fires again takes longer to resolve.
        self._leaders.turn(starving=True)
        try:
            self._watch.wait(self._watch.verdicts, _START_S, "verdicts")
            self._await_alert(AlertState.FIRING)
        except HeadroomError as error:
            played.all_failed(f"no alert: {error}")
        repaired = self._repair(played)
        for damage, faults in played.faults.items():
            if damage.place is DamagedPlace.TABLE:
                faults += _faults_of_table(locations[damage], before[damage] - at_risk[damage])
        counts = {damage: row_count(locations[damage]) for damage in before}
        self._leaders.restore()
        self._go_on(played, counts, locations, began_s)
        text = self._log_since(log_from) + repaired
        for damage, faults in played.faults.items():
            if not _is_named(damage, text) and not (damage.place is DamagedPlace.LOCK and self._is_owned(damage)):
                faults.append("silent: neither the log nor the repair names it")
        self._find_damage(played)
        return played

    def _go_on(
        self,
        played: DamageRound,
        counts: Mapping[PlannedDamage, int],
        locations: Mapping[PlannedDamage, Path],
        began_s: float,
    ) -> None:
        """Wait until all that was damaged is used again, and note what is not."""
        with suppress(HeadroomError):
            self._await_alert(AlertState.RESOLVED)
        until_s = time.monotonic() + _AGAIN_S
        for damage, faults in played.faults.items():
            try:
                if damage.name == ACTION_JOURNAL.path:
                    self._write_journal()
                await_true(
                    lambda of=damage: self._is_used(of, locations[of], counts.get(of, 0), began_s),  # type: ignore[misc]
                    max(0.0, until_s - time.monotonic()),
                    "further use",
                )
            except HeadroomError as error:
                faults.append(str(error))

    def _is_used(self, damage: PlannedDamage, location: Path, count: int, began_s: float) -> bool:
        """Return whether a table has further rows, a query has written a batch, or a lock has an owner."""
        if damage.place is DamagedPlace.TABLE:
            return row_count(location) > count
        if damage.place is DamagedPlace.LOCK:
            return self._is_owned(damage)
        written = (location / "commits").glob("[0-9]*")
        with suppress(FileNotFoundError):
            return any(file.stat().st_mtime > began_s for file in written)
        return False

    def _is_owned(self, damage: PlannedDamage) -> bool:
        owner = lock_owner(path_of(damage, self._store, self._checkpoints))
        return owner in {process.pid for process in self._watch.processes()}

    def _repair(self, played: DamageRound) -> str:
        """Repair the store, note what failed, and return what the repair printed."""
        command = headroom_command("maintain", "--config", str(self._bench.config), "--format", "json", "--repair")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_REPAIR_S, check=False)
            rows = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError) as error:
            played.all_failed(f"the repair failed: {cause_of(error)}")
            return ""
        for row in rows:
            if not row["mended"]:
                _note(played, row["table"].removeprefix("_checkpoints/"), f"not repaired: {row['file']} {row['fault']}")
        return done.stdout

    def _find_damage(self, played: DamageRound) -> None:
        """Note what is damaged after the round. A checkpoint that is being written is read a second time."""
        for table in ALL_TABLES:
            for damage in damages(str(self._store / table.path), thorough=True)[:1]:
                _note(played, table.path, f"still damaged: {damage.file} {damage.fault}")
        for name, _, checkpoint in checkpoints_of(self._bench.settings.store):
            if (found := checkpoint.damage()) is not None and checkpoint.damage() == found:
                _note(played, name, f"still damaged: {found.file} {found.fault}")

    def _await_alert(self, state: AlertState) -> None:
        """Return once the leader's alert is printed in a state, and a receiver has got it.

        Raises:
            HeadroomError: it was not in time.
        """

        def is_delivered() -> bool:
            shown = self._receivers.shown().values()
            return any(event_key(line.event) in keys for line in self._events(state) for keys in shown)

        self._watch.wait(is_delivered, _ALERT_S, f"an alert on {self._leaders.subject} {state.value}")

    def _events(self, state: AlertState) -> Iterator[Line]:
        for line in self._watch.events():
            if line.fields["subject"] == self._leaders.subject and line.fields["state"] == state.value:
                yield line

    def _write_journal(self) -> None:
        self._journalled += 1
        step, state = StepKind.RATE.value, StepState.DONE.value
        cluster, now_ms = self._bench.settings.cluster.name, round(time.time() * 1000)
        row = JournalRow(
            "0", self._journalled, cluster, "benchmark", step, state, "broker 1 as leader", None, None, "", now_ms
        )
        self._journal.append([row])

    def _log_size(self) -> int:
        return self._watch.log.stat().st_size

    def _log_since(self, size: int) -> str:
        with self._watch.log.open("rb") as log:
            log.seek(size)
            return log.read().decode(errors="replace")


def _note(played: DamageRound, name: str, fault: str) -> None:
    """Note a fault of a table or checkpoint, damaged or not."""
    for damage, faults in played.faults.items():
        if damage.name == name and damage.place is not DamagedPlace.LOCK:
            faults.append(fault)
            return
    played.elsewhere.append(f"{name} {fault}")


def _is_named(damage: PlannedDamage, text: str) -> bool:
    """Return whether a log or the output of the repair names what was damaged."""
    if damage.place is DamagedPlace.TABLE:
        return damage.name in text
    if damage.place is DamagedPlace.LOCK:
        return f"{damage.name}.lock" in text
    return f"checkpoint {damage.name}" in text or f"_checkpoints/{damage.name}" in text


def _is_written(damage: PlannedDamage, location: Path) -> bool:
    """Return whether there is something to damage."""
    if damage.place is DamagedPlace.TABLE:
        return row_count(location) > 0
    return location.exists() if damage.place is DamagedPlace.LOCK else any((location / "commits").glob("[0-9]*"))


def _faults_of_table(location: Path, least: int) -> list[str]:
    """Return what is wrong with a table that was repaired.

    Args:
        location: folder of the table.
        least: number of rows that it has to have.
    """
    try:
        with without_panic(str(location)):
            count = len(query({"data": str(location)}, "SELECT * FROM data"))
    except Exception as error:
        return [f"cannot be read: {cause_of(error)}"]
    return [] if count >= least else [f"has {count} rows, and {least} were undamaged"]
