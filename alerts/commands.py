"""The exact commands that carry a recommendation out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from alerts.sides import PartitionEvidence
from planning.election_request import request_json
from planning.elections import Name

PLAN_FILE = "headroom-move.json"
ELECTIONS_FILE = "headroom-elections.json"


def headroom_apply(throttle_bytes_per_s: int, brokers: Sequence[int], config: str | None) -> str:
    """Return Headroom's own command that sets one rate on brokers and reads it back until it is in force."""
    listed = ",".join(str(b) for b in brokers)
    where = f" --config {shlex.quote(config)}" if config else ""
    return f"headroom throttle apply{where} --rate {throttle_bytes_per_s} --brokers {listed} --execute"


def kafka_configs(throttle_bytes_per_s: int, broker: int, bootstrap_servers: str) -> str:
    """Return Kafka's command that sets both throttle rates of one broker."""
    rates = ",".join(f"{role}.replication.throttled.rate={throttle_bytes_per_s}" for role in ("leader", "follower"))
    return (
        f"kafka-configs.sh --bootstrap-server {shlex.quote(bootstrap_servers)} --alter --entity-type brokers "
        f"--entity-name {broker} --add-config {rates}"
    )


def kafka_reassign(throttle_bytes_per_s: int, partitions: Sequence[PartitionEvidence], bootstrap_servers: str) -> str:
    """Return Kafka's command that changes the throttle of a running move, with the plan file that it needs."""
    return (
        f"{_write_plan(partitions)} && kafka-reassign-partitions.sh --bootstrap-server "
        f"{shlex.quote(bootstrap_servers)} --reassignment-json-file {PLAN_FILE} --execute --additional "
        f"--throttle {throttle_bytes_per_s}"
    )


def kafka_cancel(partitions: Sequence[PartitionEvidence], bootstrap_servers: str) -> str:
    """Return Kafka's command that cancels the move of these partitions, and leaves the rest of a move its throttle."""
    return (
        f"{_write_plan(partitions)} && kafka-reassign-partitions.sh --bootstrap-server "
        f"{shlex.quote(bootstrap_servers)} --reassignment-json-file {PLAN_FILE} --cancel --preserve-throttles"
    )


def headroom_elections(config: str | None) -> str:
    """Return Headroom's own command that elects preferred leaders in small batches and waits after each."""
    where = f" --config {shlex.quote(config)}" if config else ""
    return f"headroom elections{where} --execute"


def headroom_clear(config: str | None) -> str:
    """Return Headroom's own command that removes brokers' rates and all lists, and reads back until they are gone."""
    where = f" --config {shlex.quote(config)}" if config else ""
    return f"headroom throttle clear{where} --execute"


def kafka_clear_rates(broker: int, bootstrap_servers: str) -> str:
    """Return Kafka's command that removes both throttle rates of one broker."""
    return _kafka_delete("brokers", str(broker), "rate", bootstrap_servers)


def kafka_clear_lists(topic: str, bootstrap_servers: str) -> str:
    """Return Kafka's command that removes both throttled replica lists of one topic."""
    return _kafka_delete("topics", topic, "replicas", bootstrap_servers)


def kafka_elect(file: str, bootstrap_servers: str) -> str:
    """Return Kafka's command that elects the preferred leaders of the partitions that a file names."""
    return (
        f"kafka-leader-election.sh --bootstrap-server {shlex.quote(bootstrap_servers)} --election-type preferred "
        f"--path-to-json-file {shlex.quote(file)}"
    )


def kafka_elect_these(partitions: Sequence[Name], bootstrap_servers: str) -> str:
    """Return Kafka's command that elects the preferred leaders of partitions, with the file that it needs."""
    written = f"echo {shlex.quote(request_json(partitions))} > {ELECTIONS_FILE}"
    return f"{written} && {kafka_elect(ELECTIONS_FILE, bootstrap_servers)}"


def _kafka_delete(entity_type: str, name: str, what: str, bootstrap_servers: str) -> str:
    keys = ",".join(f"{role}.replication.throttled.{what}" for role in ("leader", "follower"))
    return (
        f"kafka-configs.sh --bootstrap-server {shlex.quote(bootstrap_servers)} --alter --entity-type {entity_type} "
        f"--entity-name {shlex.quote(name)} --delete-config {keys}"
    )


def _write_plan(partitions: Sequence[PartitionEvidence]) -> str:
    moves = [{"topic": p.topic, "partition": p.partition, "replicas": list(p.target)} for p in partitions]
    plan = json.dumps({"version": 1, "partitions": moves}, separators=(",", ":"))
    return f"echo {shlex.quote(plan)} > {PLAN_FILE}"
