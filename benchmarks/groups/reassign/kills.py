"""Part ``kills``: runs that get a ``kill -9`` at random steps, and then what ends them.

A step is a commit of the journal, which a command makes before and after each of its changes. Others set rates and list
entries before the run, and change some while it is dead. In turn a run is ended by the same command, by `headroom
reassign cancel` and `clean`, or, once nothing moves any more, by `clean` alone. These are killed too and repeated.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.groups.reassign.following import FollowedRun, follow_run
from benchmarks.groups.reassign.throttle_state import ThrottleValues, difference
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.throttles.list_entries import ThrottledListEntries
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import clear_lists
from headroom.planning.reassignments.plan import PLAN_VERSION
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.schemas.keys import Role
from headroom.schemas.tables import ACTION_JOURNAL

# Two kills of each run, and one or two of what ends two of three of them. Some come too late: of 20 kills of runs one
# did, and many of those that follow may.
CHAINS = 24
_ENDINGS = ("run", "cancel", "clean")
# Fixed, so that every run of the benchmark kills at the same steps.
_SEED = 19
_TOPIC = "kills"
_MB = 1_000_000
BEFORE: Mapping[int, tuple[int, ...]] = {0: (1, 2), 1: (2, 3), 2: (3, 2), 3: (1, 3), 4: (3, 2)}
AFTER: Mapping[int, tuple[int, ...]] = {0: (4, 2), 1: (4, 3), 2: (4, 2), 3: (3, 1), 4: (3, 2, 1)}
_BATCHES = ((0, 1), (2, 3, 4))
# Slow enough that the copies of a batch take some seconds.
_THROTTLE, _PARTITION_BYTES, _RECORD_BYTES = "1MB", 4 * _MB, 100_000
# Commits of a run of two batches are about 20. A later kill of the same run finds fewer of them left.
_MOST_STEPS = (12, 6)
# A cancellation and a clean-up make few.
_MOST_ENDING_STEPS = 2
_JITTER_S, _ENDING_JITTER_S = 0.3, 0.03
_DEADLINE_S, _TIMEOUT_S, _POLL_S = 180.0, 10.0, 0.1
# Of others, before: a lower rate than that of the run and a higher one, and an entry that the run needs too.
_RATES_BEFORE = {(1, "leader"): _MB // 2, (2, "leader"): 90 * _MB}
_ENTRY_BEFORE = (ThrottledList(_TOPIC, Role.LEADER), (0, 1))
# And while the run is dead: a rate that the run may have set itself, another one, and an entry in a list of the run.
_RATES_DURING = {(3, "leader"): 33 * _MB, (1, "follower"): 44 * _MB}
_ENTRY_DURING = (ThrottledList(_TOPIC, Role.FOLLOWER), (1, 3))


class KilledRuns:
    """Kills runs of the same plan and of its way back, in turn.

    Args:
        bench: the cluster; its first and only topic is created here.
    """

    def __init__(self, bench: BenchCluster) -> None:
        self._bench = bench
        self._commands = HeadroomCommands(bench.config)
        self._draw = random.Random(_SEED)
        self._target = BEFORE
        self._create_topic()

    def _create_topic(self) -> None:
        replicas = {partition: list(own) for partition, own in BEFORE.items()}
        self._bench.admin.create_topics({_TOPIC: {"assignments": replicas}}, wait_for_metadata=True)
        producer = KafkaProducer(bootstrap_servers=self._bench.bootstrap_servers)
        for number in range(len(BEFORE) * _PARTITION_BYTES // _RECORD_BYTES):
            producer.send(_TOPIC, os.urandom(_RECORD_BYTES), partition=number % len(BEFORE))
        producer.close()

    def record(self, number: int, on_progress: OnProgress) -> dict[str, Any]:
        """Kill one run, end it, and return what was left of it.

        Raises:
            HeadroomError: a command did not end.
        """
        ending = _ENDINGS[number % len(_ENDINGS)]
        self._set_before()
        before = self._replicas()
        self._target = AFTER if self._target is BEFORE else BEFORE
        files = self._plan_files(number)
        words = ["reassign", "run", *files, "--throttle", _THROTTLE, "--execute", "--yes"]
        kills = [kill for most in _MOST_STEPS if (kill := self._kill_one(words, most)) is not None]
        others = self._change_during()
        if ending == "cancel":
            kills += self._kill_and_repeat(["reassign", "cancel", *files, "--execute", "--yes"])
        if ending != "run":
            words = ["reassign", "clean", "--execute"]
            self._await_end_of_moves()
            kills += [kill for kill in [self._kill_one(words, _MOST_ENDING_STEPS)] if kill is not None]
        followed = follow_run(self._bench, self._start(words), others, _DEADLINE_S)
        deviation = difference(followed.throttles, others)
        # What was cancelled or never begun is where it was, in its order.
        allowed = [self._target] if ending == "run" else [self._target, before]
        unfinished = self._count_unfinished(followed, allowed)
        # A run that a clean-up ends has waited for it.
        clean_s = followed.clean_s if ending == "run" else None
        on_progress(
            f"chain {number + 1}, ended by {ending}: killed {'; '.join(kills)}; {unfinished} unfinished, {deviation}"
        )
        return {
            "ending": ending,
            "kills": kills,
            "unfinished": unfinished,
            "foreign": len(others),
            **deviation._asdict(),
            "clean_s": clean_s,
        }

    def _plan_files(self, number: int) -> list[str]:
        files = []
        for batch, partitions in enumerate(_BATCHES):
            rows = [{"topic": _TOPIC, "partition": p, "replicas": list(self._target[p])} for p in partitions]
            files.append(self._bench.folder / f"chain-{number}-{batch}.json")
            files[-1].write_text(json.dumps({"version": PLAN_VERSION, "partitions": rows}), encoding="utf-8")
        return [str(file) for file in files]

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        return self._commands.start(*words, log=self._bench.folder / "runs.log")

    def _kill_one(self, words: list[str], most_steps: int) -> str | None:
        """Start the command and kill it at a random step; return where, or None if it ended before."""
        first, step = self._commits(), self._draw.randint(1, most_steps)
        # What ends a run is over soon after its first commit.
        jitter_s = self._draw.uniform(0, _JITTER_S if most_steps > _MOST_ENDING_STEPS else _ENDING_JITTER_S)
        give_up_s = time.monotonic() + _DEADLINE_S
        process = self._start(words)
        while process.poll() is None and self._commits() < first + step and time.monotonic() < give_up_s:
            time.sleep(0.005)
        time.sleep(jitter_s)
        if process.poll() is not None:
            return None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"{words[1]} {jitter_s:.2f} s after commit {step}"

    def _kill_and_repeat(self, words: list[str]) -> list[str]:
        """Kill a command and run it again to its end; return where it was killed, nothing if it ended before."""
        kill = self._kill_one(words, _MOST_ENDING_STEPS)
        self._start(words).wait(_DEADLINE_S)
        return [] if kill is None else [kill]

    def _await_end_of_moves(self) -> None:
        give_up_s = time.monotonic() + _DEADLINE_S
        while self._bench.admin.list_partition_reassignments():
            if time.monotonic() > give_up_s:
                raise failure(f"a killed run still moved after {_DEADLINE_S:.0f} s")
            time.sleep(_POLL_S)

    def _commits(self) -> int:
        """Return the number of commits of the journal."""
        log = Path(self._bench.store) / ACTION_JOURNAL.path / "_delta_log"
        return max((int(path.stem) + 1 for path in log.glob("*.json") if path.stem.isdigit()), default=0)

    def _set_before(self) -> None:
        clear_rates(self._bench.settings, self._bench.brokers)
        clear_lists(self._bench.settings, [_TOPIC])
        apply_rates(self._bench.settings, _RATES_BEFORE)
        self._append(*_ENTRY_BEFORE)

    def _change_during(self) -> ThrottleValues:
        """Change throttles as others do, and return all that others have set."""
        apply_rates(self._bench.settings, _RATES_DURING)
        self._append(*_ENTRY_DURING)
        entries = ((name.topic, name.role.value, *entry) for name, entry in (_ENTRY_BEFORE, _ENTRY_DURING))
        return ThrottleValues({**_RATES_BEFORE, **_RATES_DURING}, frozenset(entries))

    def _append(self, name: ThrottledList, entry: tuple[int, int]) -> None:
        connection = AdminConnection(self._bench.settings.cluster)
        try:
            ThrottledListEntries(connection, _TIMEOUT_S, _TIMEOUT_S).append({name: [entry]})
        finally:
            connection.close()

    def _replicas(self) -> dict[int, tuple[int, ...]]:
        partitions = self._bench.admin.describe_topics([_TOPIC])[0]["partitions"]
        return {p["partition_index"]: tuple(p["replica_nodes"]) for p in partitions}

    def _count_unfinished(self, followed: FollowedRun, allowed: Sequence[Mapping[int, tuple[int, ...]]]) -> int:
        """Return the number of partitions that are nowhere where they may be, and of runs that have no end."""
        moving = self._bench.admin.list_partition_reassignments()
        replicas = self._replicas()
        elsewhere = sum(all(own != places[number] for places in allowed) for number, own in replicas.items())
        runs = self._commands.json("reassign", "runs")["runs"]
        if not runs:
            raise failure("the journal has no run")
        return elsewhere + bool(moving) + sum(run["state"] == "unfinished" for run in runs) + bool(followed.code)
