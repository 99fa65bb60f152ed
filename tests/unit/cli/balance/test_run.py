"""``headroom balance run``: which batch is next, what is weighed before it, and when the command ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from headroom.cli.balance.proposal import run as run_module
from headroom.cli.main import headroom
from headroom.cli.reassign.plan_run import CarriedOut, RunOptions, TextStream
from headroom.operations.balance import proposal_run, written_proposal
from headroom.operations.reassignments.run import RunResult
from headroom.operations.reassignments.run_plan import PlannedRun
from headroom.planning.elections.planner import PartitionState
from headroom.planning.elections.quiet_hours import DailyWindow
from headroom.planning.reassignments.plan import BatchNumbers, ReassignmentPlan
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.cli.balance.test_live import FakeReader, found, store

__all__ = ["store"]


class Brokers:
    """The fake cluster of ``test_live``, in which a batch that is carried out is there at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = FakeReader.state
        self.moving: set[Any] = set()
        self.carried_out: list[tuple[ReassignmentPlan, RunOptions, str]] = []
        self.fails: HeadroomError | None = None
        self.ends_well = 0
        # Whether batches that are carried out elect their leaders.
        self.elects = True
        monkeypatch.setattr(run_module, "carry_out", self.carry_out)
        monkeypatch.setattr(written_proposal, "LiveCluster", lambda settings: self)
        monkeypatch.setattr(FakeReader, "state", property(lambda _: self.state))

    def __enter__(self) -> Brokers:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def leadership(self) -> Any:
        states = {
            p.name: PartitionState(p.name, p.leader, p.replicas, p.isr, p.name in self.moving)
            for p in self.state.partitions.values()
        }
        return type("Leadership", (), {"partitions": states})

    def carry_out(
        self, plans: Sequence[ReassignmentPlan], options: RunOptions, text: TextStream, command: str, fingerprint: str
    ) -> CarriedOut:
        if self.fails is not None and len(self.carried_out) == self.ends_well:
            raise self.fails
        (plan,) = plans
        self.carried_out.append((plan, options, fingerprint))
        placed = dict(self.state.partitions)
        for target in plan:
            now = placed[target.name]
            leader = target.replicas[0] if self.elects or now.leader not in target.replicas else now.leader
            placed[target.name] = replace(now, replicas=target.replicas, isr=target.replicas, leader=leader)
        self.state = replace(self.state, partitions=placed)
        return CarriedOut(cast(PlannedRun, None), "orders", RunResult())


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    monkeypatch.setenv("HEADROOM_REASSIGN__PAUSE_S", "0")
    return Brokers(monkeypatch)


def balance_run(*words: str) -> Result:
    return CliRunner().invoke(headroom, ["balance", "run", "out", *words])


def executed(*words: str) -> Result:
    return balance_run("--execute", "--yes", *words)


def test_nothing_is_changed_without_execute(brokers: Brokers) -> None:
    found("propose", "--dir", "out")
    done = balance_run()
    assert done.exit_code == 0
    assert "all that is left takes load outside of bands" in done.stdout
    assert "Nothing was changed. To do it: headroom balance run out --execute" in done.stdout
    assert brokers.carried_out == []


def test_a_throttle_below_what_kafka_keeps_needs_a_second_flag(brokers: Brokers) -> None:
    proposal = found("propose", "--dir", "out")
    file = Path("out") / "proposal.json"
    assert any(batch["copied_replicas"] for batch in proposal["batches"])
    file.write_text(json.dumps({**json.loads(file.read_text()), "throttle_bytes_per_s": 6_000}))
    refused = executed()
    assert (refused.exit_code, brokers.carried_out) == (2, [])
    assert "The throttle of the proposal is 6 kB/s, and Kafka does not keep a rate below 1 MB/s" in refused.stderr
    assert "headroom balance run out --low-rate --execute" in balance_run("--low-rate").stdout


@pytest.mark.parametrize("throttle", ["20MB", 1.5, True, -1, 0])
def test_a_throttle_of_a_file_that_is_no_number_of_bytes_is_refused(brokers: Brokers, throttle: object) -> None:
    found("propose", "--dir", "out")
    file = Path("out") / "proposal.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "throttle_bytes_per_s": throttle}))
    assert "has a throttle_bytes_per_s that is not a number of bytes" in str(executed().exception)
    batches = [{**batch, "run_throttle_bytes_per_s": throttle} for batch in document["batches"]]
    file.write_text(json.dumps({**document, "batches": batches}))
    assert "has a throttle_bytes_per_s that is not a number of bytes" in str(executed().exception)


def test_a_batch_has_its_own_throttle_and_in_files_of_earlier_versions_that_of_the_proposal(brokers: Brokers) -> None:
    found("propose", "--dir", "out")
    file = Path("out") / "proposal.json"
    document = json.loads(file.read_text())
    settings = Settings(cluster=ClusterSettings(name=document["cluster"]))
    copying = next(batch for batch in document["batches"] if batch["copied_replicas"])
    copying["run_throttle_bytes_per_s"] = 3_000_000
    file.write_text(json.dumps(document))
    assert written_proposal.read_own_proposal(Path("out"), settings).throttle_of(copying["number"]) == 3_000_000
    del copying["run_throttle_bytes_per_s"]
    file.write_text(json.dumps(document))
    throttle = document["throttle_bytes_per_s"]
    assert written_proposal.read_own_proposal(Path("out"), settings).throttle_of(copying["number"]) == throttle


def test_all_batches_are_run_exactly_as_proposed(brokers: Brokers) -> None:
    values = found("propose", "--dir", "out")
    done = executed("--format", "json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    numbers = [batch["number"] for batch in values["batches"]]
    assert (result["ran"], result["next_batch"]) == (numbers, None)
    assert result["outside_after"] < result["outside_before"]
    for (plan, options, fingerprint), batch in zip(brokers.carried_out, values["batches"], strict=True):
        assert [a.as_json() for a in plan] == batch["plan"]["partitions"]
        assert fingerprint == batch["fingerprint"]
        rate = values["throttle_bytes_per_s"] if batch["copied_replicas"] else None
        assert options.request.rates.throttle_bytes_per_s == rate
        assert options.again() == "headroom balance run out --execute"
    assert "All" in executed().stdout
    assert len(brokers.carried_out) == len(numbers)


def test_after_an_error_the_same_command_continues_with_the_next_batch(brokers: Brokers) -> None:
    values = found("propose", "--dir", "out")
    assert len(values["batches"]) > 1
    brokers.fails = HeadroomError("run", "ended early", "Again.")
    brokers.ends_well = 1
    assert executed().exception is brokers.fails
    brokers.fails = None
    done = executed("--format", "json")
    assert json.loads(done.stdout)["ran"] == [batch["number"] for batch in values["batches"][1:]]


def test_an_interrupted_batch_is_resumed_without_weighing_it_again(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = found("propose", "--dir", "out")
    first = values["batches"][0]
    unfinished = RecordedRun("r1", fingerprint=first["fingerprint"], state=RunState.UNFINISHED)
    monkeypatch.setattr(proposal_run.RunSession, "__init__", lambda self, *_: setattr(self, "records", [unfinished]))
    names = {(t["topic"], t["partition"]) for t in first["plan"]["partitions"]}
    brokers.moving = {name for name in brokers.state.partitions if tuple(name) in names}
    done = balance_run()
    assert f"Batch 1 of {len(values['batches'])} was interrupted, and goes on." in done.stdout


def test_a_batch_is_refused_while_its_partitions_move_by_another_command(brokers: Brokers) -> None:
    found("propose", "--dir", "out")
    brokers.moving = set(brokers.state.partitions)
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert "not by a run of this proposal" in error.rule
    assert brokers.carried_out == []


def test_it_ends_where_a_broker_is_gone_or_unknown_or_nothing_is_gained(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    found("propose", "--dir", "out")
    whole = brokers.state
    down = replace(whole.brokers[3], alive=False)
    brokers.state = replace(whole, brokers={**whole.brokers, 3: down})
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert "needs brokers that are gone: 3" in error.rule
    brokers.state = whole
    monkeypatch.setattr(FakeReader, "unmeasured", {3: "connection refused"})
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert "changes brokers whose metrics are unknown or stale: 3" in error.rule
    monkeypatch.setattr(FakeReader, "unmeasured", {})
    monkeypatch.setattr(FakeReader, "read", {})
    # Loads so small that every broker counts as in band.
    monkeypatch.setenv("HEADROOM_BALANCE__GOALS", "network_in")
    monkeypatch.setenv("HEADROOM_BALANCE__DETECT_BELOW", "1GB")
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert "gains nothing any more" in error.rule
    assert brokers.carried_out == []


def test_it_ends_where_a_broker_takes_nothing_any_more_or_a_load_is_unknown(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = found("propose", "--dir", "out")
    whole = brokers.state
    cordoned = tuple(replace(directory, cordoned=True) for directory in whole.brokers[3].log_dirs)
    brokers.state = replace(whole, brokers={**whole.brokers, 3: replace(whole.brokers[3], log_dirs=cordoned)})
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert error.rule == "gives load to brokers that take nothing now: 3 (cordoned)"
    brokers.state = whole
    first = values["batches"][0]["plan"]["partitions"][0]
    unread = TopicPartition(first["topic"], first["partition"])
    read = {name: rate for name, rate in FakeReader.read.items() if name != unread}
    monkeypatch.setattr(FakeReader, "read", read)
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert error.rule == f"changes partitions of which a load is unknown: {unread}"
    assert brokers.carried_out == []


def test_it_ends_where_a_limit_would_be_broken_although_load_outside_of_bands_falls(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 3 is to get 4 x 7 MB/s. The limit is 25 MB/s now, beyond which the others receive 42."""
    found("propose", "--dir", "out")
    monkeypatch.setenv("HEADROOM_BALANCE__NETWORK_IN_CAPACITY", "31.25MB")
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert error.rule.endswith("or break them further: network_in_capacity of broker 3")
    assert brokers.carried_out == []


def test_a_load_that_is_unknown_in_one_reading_ends_nothing(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Kafka gives a lead back between its two moments."""
    values = found("propose", "--dir", "out")
    known = FakeReader.read
    first = values["batches"][0]["plan"]["partitions"][0]
    switched = {name: rate for name, rate in known.items() if name != (first["topic"], first["partition"])}
    readings = chain([switched], repeat(known))
    monkeypatch.setattr(FakeReader, "read", property(lambda _: next(readings)))
    assert json.loads(executed("--format", "json").stdout)["next_batch"] is None
    assert len(brokers.carried_out) == len(values["batches"])


def test_the_goals_that_were_asked_for_are_weighed(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    values = found("propose", "--goals", "disk", "--dir", "out")
    assert values["asked_goals"] == ["disk"]
    monkeypatch.setenv("HEADROOM_BALANCE__GOALS", "leaders")
    assert executed().exit_code == 0
    assert brokers.carried_out


class Window:
    """A window that is open from a number of looks at it on."""

    def __init__(self, opens: int) -> None:
        self.opens, self.looks = opens, 0

    def contains(self, at_s: float) -> bool:
        self.looks += 1
        return self.looks > self.opens

    def ends_too_early(self, at_s: float, lasts_s: float) -> bool:
        return False


def test_batches_begin_in_the_window(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    found("propose", "--dir", "out")
    monkeypatch.setenv("HEADROOM_BALANCE__WINDOW", "01:00-05:00")
    monkeypatch.setattr(run_module, "_WINDOW_POLL_S", 0.0)
    closed = Window(opens=1_000_000)
    monkeypatch.setattr(DailyWindow, "of", lambda text: closed)
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert str(error).startswith("balance.window: is 01:00-05:00, and it is not that now")
    assert brokers.carried_out == []
    soon = Window(opens=3)
    monkeypatch.setattr(DailyWindow, "of", lambda text: soon)
    done = executed("--wait")
    assert done.exit_code == 0
    assert "Waiting for balance.window (01:00-05:00)" in done.stderr
    assert brokers.carried_out


class Clock:
    """The time of day that the command reads: an hour later at every look."""

    def __init__(self, hour: float) -> None:
        self.now_s = hour * 3600

    def time(self) -> float:
        self.now_s += 3600
        return self.now_s


def test_a_batch_that_is_shorter_than_the_window_begins_only_if_it_ends_in_it(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = found("propose", "--dir", "out")
    file = Path("out") / "proposal.json"
    for batch in values["batches"]:
        batch["duration_s"] = 5400.0
    file.write_text(json.dumps(values))
    monkeypatch.setenv("HEADROOM_BALANCE__WINDOW", "01:00-05:00 UTC")
    monkeypatch.setattr(run_module, "_WINDOW_POLL_S", 0.0)
    monkeypatch.setattr(run_module, "time", Clock(3))
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert error.rule.endswith("and batch 1 takes about 1 h 30 min, but it ends in 1 h"), error.rule
    assert brokers.carried_out == []
    clock = Clock(3)
    monkeypatch.setattr(run_module, "time", clock)
    assert executed("--wait").exit_code == 0
    assert len(brokers.carried_out) == len(values["batches"])
    # The next window, on the day after.
    assert clock.now_s > 24 * 3600


def test_batches_are_numbered_as_in_the_proposal(brokers: Brokers) -> None:
    values = found("propose", "--dir", "out")
    count = len(values["batches"])
    assert count > 1
    executed()
    assert [options.request.numbers for _, options, _ in brokers.carried_out] == [
        BatchNumbers(number, count) for number in range(1, count + 1)
    ]


def test_leaders_that_did_not_come_are_not_done(brokers: Brokers) -> None:
    values = found("propose", "--dir", "out")
    brokers.elects = False
    error = executed().exception
    assert isinstance(error, HeadroomError)
    assert error.rule == "batch 1 has ended, and some of its partitions do not have their target replicas or leaders"
    status = CliRunner().invoke(headroom, ["balance", "status", "out"]).stdout
    assert f"0 of {len(values['batches'])} batches are done" in status
    assert "Not led by their first replica: " in status
    brokers.elects = True
    done = executed("--format", "json")
    assert json.loads(done.stdout)["next_batch"] is None


def test_a_batch_whose_elections_failed_goes_on(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    values = found("propose", "--dir", "out")
    brokers.elects = False
    executed()
    failed = RecordedRun("r1", fingerprint=values["batches"][0]["fingerprint"], elections_failed=True)
    monkeypatch.setattr(proposal_run.RunSession, "__init__", lambda self, *_: setattr(self, "records", [failed]))
    brokers.elects = True
    # It is not weighed again; and once its leaders have come, nothing is left of it.
    assert f"Batch 1 of {len(values['batches'])} was interrupted, and goes on." in executed().stdout
    assert f"All {len(values['batches'])} batches are done." in executed().stdout


@pytest.mark.parametrize("words", [("--yes",), ("--wait",), ("--execute",)])
def test_options_that_have_no_effect_are_refused(words: tuple[str, ...]) -> None:
    assert balance_run(*words).exit_code == 2
