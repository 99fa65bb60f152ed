from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.validation import (
    awaited_brokers,
    awaiting_leader,
    plan_notes,
    require_possible,
    require_room,
    waiting_notes,
)
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.cluster_states import MB, placed, plan_of, state_of


def refusal(plan: ReassignmentPlan, state: ClusterState) -> str:
    def check() -> None:
        require_possible(plan, state, "move.json")
        require_room([plan], state, "move.json")

    with pytest.raises(HeadroomError) as found:
        check()
    return str(found.value)


def disk(usable_bytes: int, path: str = "/a", **fields: Any) -> LogDirectory:
    """Return a directory on a disk of its own: the sizes of the disks differ."""
    return LogDirectory(path, 10**12 + ord(path[-1]), usable_bytes, **fields)


@pytest.mark.parametrize(
    ("targets", "fields", "rule"),
    [
        ({7: (1,)}, {}, "t-7 is not a partition of its topic"),
        ({0: (1, 9)}, {}, "broker 9, which is not in the cluster. Name others; there are: 1, 2, 3, 5"),
        ({0: (1, 4)}, {}, "broker 4, which is down"),
        ({0: (1, 3)}, {"adding": (2,)}, "is being reassigned already"),
        ({0: (1, 3)}, {"leader": None, "isr": ()}, "has no leader"),
        ({0: (1, 2)}, {}, "changes nothing: all 1 partitions have these replicas already"),
    ],
)
def test_an_invalid_plan_is_refused_with_its_rule(
    targets: dict[int, tuple[int, ...]], fields: dict[str, Any], rule: str
) -> None:
    state = state_of([placed(0, (1, 2), **fields)], {4: BrokerState(4, alive=False)})
    assert rule in refusal(plan_of(targets), state)


def test_an_unknown_topic_is_named() -> None:
    plan = ReassignmentPlan((TargetAssignment(TopicPartition("u", 0), (1,)),))
    assert "u-0 has no topic u" in refusal(plan, state_of([placed(0, (1,))]))


def test_an_empty_plan_is_refused() -> None:
    assert "names no partition" in refusal(ReassignmentPlan(()), state_of([]))


def test_many_problems_are_cut_with_a_count() -> None:
    text = refusal(plan_of(dict.fromkeys(range(1, 13), (1,))), state_of([placed(0, (1,))]))
    assert "t-5 is not a partition" in text
    assert "t-6" not in text
    assert "and 7 more problems" in text


def test_a_replica_that_is_down_already_may_stay() -> None:
    state = state_of([placed(0, (1, 4), isr=(1,))], {4: BrokerState(4, alive=False)})
    changes = require_possible(plan_of({0: (1, 4, 3)}), state, "move.json")
    assert "Under-replicated now: t-0" in " ".join(plan_notes(plan_of({0: (1, 4, 3)}), changes, state))


# Broker 4 is down. What the end waits for before Kafka 4.3, since then, and where the release is unknown.
ALWAYS, EARLIER, NEVER = ("certain", "certain", "certain"), ("certain", None, "possible"), (None, None, None)


@pytest.mark.parametrize(
    ("replicas", "target", "waits"),
    [
        ((1, 2, 4), (1, 4), ALWAYS),
        ((1, 2, 3, 4), (5, 4), ALWAYS),
        ((1, 2, 4), (1, 3, 4), EARLIER),
        ((1, 2, 4), (1, 2, 3, 4), EARLIER),
        ((1, 2, 4), (1, 3, 5), NEVER),
        ((1, 2, 4), (1, 2), NEVER),
        ((1, 2, 4), (2, 1, 4), NEVER),
        ((1, 2, 3), (1, 2, 5), NEVER),
    ],
)
def test_a_kept_replica_on_a_dead_broker_is_what_a_move_waits_for(
    replicas: tuple[int, ...], target: tuple[int, ...], waits: tuple[str | None, ...]
) -> None:
    isr = tuple(broker for broker in replicas if broker != 4)
    plan = plan_of({0: target})
    for release_waits, awaited in zip((True, False, None), waits, strict=True):
        state = state_of([placed(0, replicas, isr=isr)], {4: BrokerState(4, alive=False)}, waits_for_kept=release_waits)
        found = awaited_brokers(plan, state)
        assert [(a.broker, a.is_certain) for a in found] == ([] if awaited is None else [(4, awaited == "certain")])
        notes = [note for note in plan_notes(plan, plan_changes(plan, state), state) if "keeps a replica" in note]
        assert len(notes) == len(found)


def test_the_note_on_what_a_move_waits_for_names_a_plan_without_it() -> None:
    state = state_of([placed(0, (1, 2, 4), isr=(1, 2))], {4: BrokerState(4, alive=False)})
    plan = plan_of({0: (1, 3, 4)})
    (possible,) = waiting_notes(plan, state)
    assert possible == (
        "Broker 4 is down and keeps a replica of t-0: such a move before Kafka 4.3 ends only when it is back, or with "
        "a target without it: headroom plan --drain 4 --topics t --save-plan without-4.json"
    )
    (certain,) = waiting_notes(plan, replace(state, waits_for_kept=True))
    assert "such a move ends only when it is back, or" in certain
    running = state_of([placed(0, (1, 3, 4, 2), isr=(1, 2), adding=(3,), removing=(2,))], state.brokers)
    (cancelled,) = waiting_notes(plan, running)
    assert "or with a target without it after it is cancelled: headroom plan" in cancelled


def test_a_new_replica_waits_for_a_leader_that_has_nothing_to_copy_yet() -> None:
    waiting = placed(0, (1, 2), awaits_leader=True)
    assert awaiting_leader(plan_of({0: (1, 3)}), state_of([waiting])) == (TopicPartition("t", 0),)
    (note,) = waiting_notes(plan_of({0: (1, 3)}), state_of([waiting]))
    assert note.startswith("New replicas of t-0 copy nothing yet")
    # It gains none, or nothing is waited for.
    assert awaiting_leader(plan_of({0: (2, 1)}), state_of([waiting])) == ()
    assert awaiting_leader(plan_of({0: (1, 3)}), state_of([placed(0, (1, 2))])) == ()
    # One of two that are being added has begun to copy.
    copying = placed(0, (1, 2, 3, 5), adding=(3, 5), copied_bytes={3: MB, 5: 0}, awaits_leader=True)
    assert awaiting_leader(plan_of({0: (1, 2, 3)}), state_of([copying])) == ()
    assert awaiting_leader(plan_of({0: (1, 2, 3, 5)}), state_of([copying])) == (TopicPartition("t", 0),)


def test_a_destination_without_room_is_refused() -> None:
    """Two copies of 100 MB, 150 MB left; what leaves broker 3 makes no room before the end."""
    placements = [placed(0, (1, 2)), placed(1, (1, 2)), placed(2, (3, 2))]
    plan = plan_of({0: (1, 3), 1: (1, 3), 2: (1, 2)})
    state = state_of(placements, {3: BrokerState(3, log_dirs=(disk(150 * MB),))})
    assert "broker 3 has 150,000,000 bytes free, and the plan copies 200,000,000 there (t-0, t-1)" in refusal(
        plan, state
    )
    roomy = state_of(placements, {3: BrokerState(3, log_dirs=(disk(150 * MB), disk(60 * MB, "/b")))})
    require_room([plan], roomy, "move.json")


def test_a_destination_with_cordoned_directories_alone_is_noted_and_its_room_is_checked() -> None:
    state = state_of([placed(0, (1, 2))], {3: BrokerState(3, log_dirs=(disk(90 * MB, cordoned=True),))})
    plan = plan_of({0: (1, 3)})
    assert "broker 3 has 90,000,000 bytes free in one log directory, and t-0 has 100,000,000" in refusal(plan, state)
    (note,) = [note for note in plan_notes(plan, plan_changes(plan, state), state) if "cordoned" in note]
    assert note.startswith("All log directories of broker 3 are cordoned, and the plan adds replicas there")
    # One that stays copies nothing.
    kept = state_of([placed(0, (1, 3))], state.brokers)
    assert not any("cordoned" in note for note in plan_notes(plan, plan_changes(plan, kept), kept))


def test_directories_on_one_volume_count_once() -> None:
    one_volume = (LogDirectory("/a", 10**12, 150 * MB), LogDirectory("/b", 10**12, 150 * MB))
    state = state_of([placed(0, (1, 2)), placed(1, (1, 2))], {3: BrokerState(3, log_dirs=one_volume)})
    refused = refusal(plan_of({0: (1, 3), 1: (1, 3)}), state)
    assert "has 150,000,000 bytes free (count as one volume: /a, /b), and the plan copies 200,000,000 there" in refused
    assert 'set cluster.log_dir_volumes = "separate".' in refused


def test_named_directories_have_to_be_there_and_have_room() -> None:
    directories = (disk(50 * MB), disk(500 * MB, "/b"), disk(500 * MB, "/c", offline=True))
    state = state_of([placed(0, (1,))], {3: BrokerState(3, log_dirs=directories)})

    def plan(path: str) -> ReassignmentPlan:
        return ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), (1, 3), ("any", path)),))

    assert "log directory /d of broker 3 does not exist" in refusal(plan("/d"), state)
    assert "log directory /c of broker 3 is offline" in refusal(plan("/c"), state)
    assert "log directory /a of broker 3 has 50,000,000 bytes free, and the plan copies 100,000,000" in refusal(
        plan("/a"), state
    )
    require_possible(plan("/b"), state, "move.json")
    require_room([plan("/b")], state, "move.json")


def test_notes() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: None, 5: None}
    brokers = {b: BrokerState(b, rack=rack) for b, rack in racks.items()}
    state = state_of([placed(0, (1, 2)), placed(1, (1, 2)), placed(2, (4, 5), adding=(5,))], brokers)
    plan = plan_of({0: (1, 3), 1: (2, 1, 3)})
    text = " ".join(plan_notes(plan, require_possible(plan, state, "move.json"), state))
    assert "Only some brokers have a rack (4, 5 have none)" in text
    assert "On fewer racks than before: t-0." in text
    assert "The replication factor of 1 partition changes." in text
    assert "Other partitions are being reassigned: t-2" in text
    assert "Free disk space is unknown" in text
