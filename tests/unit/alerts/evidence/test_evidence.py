"""Evidence as JSON: which keys there are, in which order, and what becomes of words and partitions."""

from __future__ import annotations

import json
from dataclasses import replace

from headroom.alerts.evidence.evidence import Evidence, EvidenceCause, OutOfSyncPartition
from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.inputs.throttle_status import LeaderSwitch
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import TICK_MS, partition, status

COMMON_KEYS = [
    "broker_id",
    "role",
    "throttle_bytes_per_s",
    "in_sync_bytes_per_s",
    "required_bytes_per_s",
    "remaining_bytes",
    "partitions",
    "switch_tick_ms",
]
# As the first versions stored them, later ones last.
THROTTLE_KEYS = [
    "broker_id",
    "role",
    "verdict",
    "throttle_bytes_per_s",
    "in_sync_bytes_per_s",
    "required_bytes_per_s",
    "quota_bytes_per_s",
    "remaining_bytes",
    "moving_replicas",
    "stalled_replicas",
    "waiting_replicas",
    "known_in_sync_bytes_per_s",
    "known_required_bytes_per_s",
    "counting_partitions",
    "partitions",
    "switch_tick_ms",
    "switches",
    "reason",
    "down_required_bytes_per_s",
    "lasting_required_bytes_per_s",
    "down_brokers",
]


def test_values_that_do_not_apply_are_stored_and_a_cause_only_if_there_is_one() -> None:
    empty = Evidence().to_json()
    assert list(empty) == COMMON_KEYS
    assert {key: value for key, value in empty.items() if value is not None} == {"partitions": []}
    assert list(Evidence(cause=EvidenceCause.NO_LEADER).to_json()) == [*COMMON_KEYS, "cause"]


def test_keys_of_a_throttle_have_the_order_that_stored_events_have() -> None:
    evidence = ThrottleEvidence.of(status(1, Role.LEADER, 3, 4, partition()))
    assert list(evidence.to_json()) == THROTTLE_KEYS
    assert list(replace(evidence, cause=EvidenceCause.NO_RATE).to_json()) == [*THROTTLE_KEYS, "cause"]


def test_words_are_text_and_entries_of_lists_are_objects() -> None:
    switch = LeaderSwitch(3, 1, 2e6, TICK_MS, ("t-0",))
    stored = ThrottleEvidence.of(status(1, Role.LEADER, 3, 4, partition()), [switch]).to_json()
    # JSON knows no tuples: what is ready for it is what comes back.
    assert json.loads(json.dumps(stored)) == stored
    assert (type(stored["role"]), type(stored["verdict"])) == (str, str)
    assert (stored["partitions"][0]["replicas"], stored["switches"][0]["names"]) == ([3, 2, 1], ["t-0"])
    assert stored["switch_tick_ms"] == TICK_MS


def test_a_partition_out_of_sync_has_the_keys_that_every_partition_has() -> None:
    (stored,) = Evidence(partitions=[OutOfSyncPartition("t", 0, 1, True)]).to_json()["partitions"]
    assert stored.keys() & vars(partition()).keys() == stored.keys()
    assert {key for key, value in stored.items() if value is None} == {
        "write_bytes_per_s",
        "previous_leader",
        "switch_tick_ms",
    }
