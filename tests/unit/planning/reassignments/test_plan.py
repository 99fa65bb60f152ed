"""Plan files are those of Kafka's tool, read as a whole or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.planning.reassignments.plan import ReassignmentPlan, parse_plan, plan_text, proposed_part
from headroom.schemas.errors import HeadroomError

ENTRY: dict[str, Any] = {"topic": "t", "partition": 0, "replicas": [1, 2]}
CURRENT = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
PROPOSED = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2],"log_dirs":["any","any"]}]}'
# As kafka-reassign-partitions.sh of Kafka 4.3.1 prints it.
GENERATED = f"""Current partition replica assignment
{CURRENT}

Proposed partition reassignment configuration
{PROPOSED}
"""


def read(text: str) -> ReassignmentPlan:
    proposal = proposed_part(text, "move.json")
    return parse_plan(text if proposal is None else proposal, "move.json")


def refused(text: str) -> str:
    with pytest.raises(HeadroomError) as caught:
        read(text)
    return str(caught.value)


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = parse_plan(json.dumps({"version": 1, "partitions": [ENTRY]}), "move.json")
    assert parse_plan(plan_text(plan), "move.json") == plan


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"replicas": [1.0, 2]}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": ["1", 2]}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": [True, 2]}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": [-1, 2]}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": [2**31]}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": "1,2"}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": []}, "t-0 needs a list of broker ids as replicas"),
        ({"replicas": [1, 1]}, "t-0 names a replica more than once"),
        ({"log_dir": ["/a"]}, "t-0 has the key 'log_dir', which no plan has"),
        ({"partition": "0"}, "has no partition number"),
        ({"partition": 0.0}, "has no partition number"),
        ({"partition": False}, "has no partition number"),
        ({"partition": -1}, "has no partition number"),
        ({"topic": 1}, "has no topic"),
        ({"log_dirs": ["/a"]}, "has 2 replicas and 1 log_dirs"),
        ({"log_dirs": [1, 2]}, "needs a list of paths"),
    ],
)
def test_amounts_and_ids_are_numbers_of_json(wrong: dict[str, Any], rule: str) -> None:
    assert rule in refused(json.dumps({"version": 1, "partitions": [{**ENTRY, **wrong}]}))


@pytest.mark.parametrize("version", [2, 1.0, True, "1"])
def test_another_version_is_refused(version: object) -> None:
    assert "only version 1 is known" in refused(json.dumps({"version": version, "partitions": []}))


def test_a_name_that_is_given_twice_is_refused() -> None:
    text = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"replicas":[2]}]}'
    assert "has the name 'replicas' twice" in refused(text)


@pytest.mark.parametrize("text", [GENERATED, GENERATED.replace("\n", "\r\n"), GENERATED.replace(CURRENT, "")])
def test_the_proposal_is_read_from_the_output_of_generate(text: str) -> None:
    assert read(text) == parse_plan(PROPOSED, "move.json")


def test_a_plan_alone_is_no_output_of_generate() -> None:
    assert proposed_part(PROPOSED, "move.json") is None
    # Any name may be a topic's.
    named = json.dumps({"partitions": [{**ENTRY, "topic": "Proposed partition reassignment configuration"}]})
    assert proposed_part(named, "move.json") is None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (GENERATED + GENERATED, "has more than one output"),
        (GENERATED.partition("Proposed")[0], "has the current replicas of kafka-reassign-partitions.sh --generate"),
        (GENERATED.partition("{")[0] + GENERATED.partition("Proposed")[2], "has the current replicas"),
    ],
)
def test_where_the_proposal_is_not_clear_the_remedy_is_said(text: str, rule: str) -> None:
    message = refused(text)
    assert rule in message
    assert 'Keep in the file only the JSON that follows "Proposed partition reassignment configuration".' in message


def test_text_after_the_proposal_is_refused() -> None:
    assert "is not valid JSON" in refused(f"{GENERATED}$ exit\n")
