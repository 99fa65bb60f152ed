"""``headroom migration``: what its commands print, their JSON, and their exit codes."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headroom.cli.main import headroom
from headroom.cli.migration import plan as plan_command
from headroom.operations.migration import clusters as clusters_module
from headroom.operations.migration.plan import plan_migration
from headroom.operations.migration.running import changing as changing_module
from headroom.planning.migration.readings import TopicRules
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.migrations import run, set_both_clusters
from tests.unit.fakes.migration_clusters import RULES, FakeMigrationCluster, log_record

ORDERS, MIRRORED = TopicPartition("orders", 0), TopicPartition("old.orders", 0)
SYNCS = TopicPartition("mm2-offset-syncs.new.internal", 0)


@pytest.fixture
def origin() -> FakeMigrationCluster:
    cluster = FakeMigrationCluster("old", group_states={"billing": True})
    cluster.fill("orders", 0, range(100))
    key = struct.pack(">h", 6) + b"orders" + struct.pack(">i", 0)
    cluster.logs[SYNCS] = [log_record(0, 0)._replace(key=key, value=struct.pack(">qq", 10, 10))]
    cluster.offsets = {"billing": {ORDERS: 50}}
    return cluster


@pytest.fixture
def target() -> FakeMigrationCluster:
    cluster = FakeMigrationCluster("new")
    cluster.fill("old.orders", 0, range(100))
    return cluster


@pytest.fixture(autouse=True)
def connected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: FakeMigrationCluster, target: FakeMigrationCluster
) -> None:
    by_name = {"old": origin, "new": target}
    for module in (clusters_module, changing_module):
        monkeypatch.setattr(module, "MigrationCluster", lambda kafka, name: by_name[name])
    monkeypatch.chdir(tmp_path)
    set_both_clusters(monkeypatch, STORE__PATH=str(tmp_path / "store"))

    def sleep(seconds: float) -> None:
        """Producers write 20 records a second, and the group reads 10."""
        origin.now_s += seconds
        origin.ends[ORDERS] = origin.end_of(ORDERS) + int(20 * seconds)
        origin.offsets["billing"][ORDERS] += int(10 * seconds)

    monkeypatch.setattr(
        plan_command, "plan_migration", partial(plan_migration, sleep=sleep, clock_ms=lambda: 1_000_000)
    )


def printed(*words: str) -> dict[str, Any]:
    result = run(*words, "--format", "json")
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def words_of(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_a_plan_shows_when_a_partition_changes_and_who_is_left() -> None:
    result = run("plan", "orders", "--method", "mirrored")
    assert result.exit_code == 0, result.output
    text = words_of(result)
    assert "orders: 1 partition, from old to new, mirrored." in text
    assert "Rates are of 5 s until 00:16:40 UTC. The end offset is that of 5 min later (migration.prepare)." in text
    # 100 + 5 s x 20, and 300 s x 20 more, at 1,000 s and 300 s.
    assert "orders-0 0 200 20.0/s 6,200 00:21:40 UTC 6,000 to 100" in text
    # 50 + 5 s x 10; kept for 7 days and 300 s.
    assert "billing orders-0 100 6,100 10.0/s 168 h 5 min 0" in text
    assert "Nothing that was read forbids the migration." in text
    assert "Measuring write rates for 5 s" in result.stderr


def test_what_forbids_a_migration_is_shown_with_a_remedy_and_an_exit_code(origin: FakeMigrationCluster) -> None:
    origin.settings["orders"] = TopicRules("compact", 1, -1, 1, True)
    origin.stables[ORDERS] = 40
    result = run("plan", "orders")
    assert result.exit_code == 1
    text = words_of(result)
    assert "What forbids the migration" in text
    assert "orders-0 has an open transaction: its last 160 offsets may still be aborted" in text
    assert "is compacted" in text
    assert "What to know before it" in text
    assert text.endswith("Something forbids the migration.")


def test_a_plan_in_json_has_all_that_it_rests_on() -> None:
    values = printed("plan", "orders", "--method", "mirrored")
    assert (values["origin"], values["target"], values["method"], values["forbidden"]) == (
        "old",
        "new",
        "mirrored",
        False,
    )
    assert values["topics"] == [
        {
            "origin": {
                "topic": "orders",
                "topic_id": "id of orders",
                "partitions": 1,
                "least_replicas": 3,
                "settings": vars(RULES),
            },
            "target": {
                "topic": "old.orders",
                "topic_id": "id of old.orders",
                "partitions": 1,
                "least_replicas": 3,
                "settings": vars(RULES),
            },
        }
    ]
    (partition,) = values["partitions"]
    assert partition == {
        "topic": "orders",
        "partition": 0,
        "origin": {"start": 0, "end": 200, "stable": 200, "newest_ms": 1_099},
        "target": {"start": 0, "end": 100, "stable": 100, "newest_ms": 1_099},
        "write_offsets_per_s": 20.0,
        "end_offset": 6_200,
        "switch_in_s": 300.0,
        "left_offsets": 6_000,
        "unstable_offsets": 0,
        "readers": [
            {
                "group": "billing",
                "committed": 100,
                "active": True,
                "left_offsets": 6_100,
                "read_offsets_per_s": 10.0,
                "retention": {
                    "kept_s": 605_100.0,
                    "lost_offsets": 0,
                    "gone_offsets": 0,
                    "enough_retention_ms": None,
                },
            }
        ],
    }
    assert values["findings"] == []


def test_unknown_is_shown_as_unknown(origin: FakeMigrationCluster) -> None:
    origin.leaderless = {ORDERS}
    result = run("plan", "orders")
    assert result.exit_code == 1
    assert "orders-0 unknown unknown unknown unknown unknown unknown not there" in words_of(result)


def test_translate_shows_the_offset_and_what_it_rests_on() -> None:
    result = run("translate", "--group", "billing", "orders")
    assert result.exit_code == 0, result.output
    # The sync of 10: 11 to 49 may be read again.
    assert "orders-0 50 old.orders-0 11 the nearest sync 39 nothing" in words_of(result)
    assert "The group has consumers on the origin: what they read from now on is read again." in result.stdout
    result = run("translate", "--group", "billing", "orders", "--exact")
    assert "orders-0 50 old.orders-0 50 its next record 0 nothing" in words_of(result)
    assert printed("translate", "--group", "billing", "orders")["partitions"] == [
        {
            "topic": "orders",
            "partition": 0,
            "target_topic": "old.orders",
            "committed": 50,
            "target_offset": 11,
            "basis": "sync",
            "sync": {"origin": 10, "target": 10},
            "may_repeat": 39,
            "skipped": 0,
            "now": None,
            "reason": None,
        }
    ]


def test_a_partition_without_an_offset_is_exit_code_1_with_the_reason(origin: FakeMigrationCluster) -> None:
    origin.offsets["billing"][ORDERS] = 5
    result = run("translate", "--group", "billing", "orders")
    assert result.exit_code == 1
    assert "orders-0 5 old.orders-0 unknown nothing" in words_of(result)
    assert "no offset sync is at or before it" in words_of(result)


def test_offsets_are_shown_with_the_command_that_sets_them(target: FakeMigrationCluster) -> None:
    result = run("offsets", "--group", "billing", "--exact")
    assert result.exit_code == 0, result.output
    command = "headroom migration offsets --group billing --exact --execute"
    assert f"Nothing was changed. To do it: {command}" in result.stdout
    assert target.commits == []
    result = CliRunner().invoke(headroom, command.split()[1:])
    assert result.exit_code == 0, result.output
    assert "Committed on new, and read back: 1 offsets of group billing." in result.stdout
    assert target.commits == [("billing", {MIRRORED: 50})]


def test_offsets_are_written_for_kafkas_tool(tmp_path: Path) -> None:
    result = run("offsets", "--group", "billing", "orders", "--csv", "billing.csv")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "billing.csv").read_text() == "old.orders,0,11\n"
    assert (
        "kafka-consumer-groups.sh --bootstrap-server new1:9092 --group billing --reset-offsets --from-file billing.csv "
        "--execute"
    ) in result.stdout


def test_a_group_that_is_active_on_the_target_is_refused_after_the_offsets_were_shown(
    target: FakeMigrationCluster,
) -> None:
    target.group_states = {"billing": True}
    result = run("offsets", "--group", "billing", "--execute")
    assert isinstance(result.exception, HeadroomError)
    assert "has consumers, or may have" in str(result.exception)
    assert "the nearest sync" in result.stdout
    assert "Committed" not in result.stdout
    assert target.commits == []
    values = printed("offsets", "--group", "billing", "--execute")
    assert (values["executed"], values["active_on_target"], values["active_on_origin"]) == (False, True, True)
    assert values["failed"]["subject"] == "group billing on cluster new"


def test_verify_counts_what_the_mirror_has_of_each_record(target: FakeMigrationCluster) -> None:
    result = run("verify", "orders")
    assert result.exit_code == 0, result.output
    assert "100 records are on the target once, unchanged and in order." in result.stdout
    del target.logs[MIRRORED][98:]
    assert (
        "98 records are on the target once, unchanged and in order; 2 are not mirrored yet."
        in run("verify", "orders").stdout
    )
    del target.logs[MIRRORED][40:42]
    target.logs[MIRRORED].append(log_record(98, 97))
    result = run("verify", "orders")
    assert result.exit_code == 1
    assert "orders-0 96 2 2 1 0 0 0" in words_of(result)
    assert "Not a whole mirror: 2 missing, 1 doubled; 96 records have a copy; 2 are not mirrored yet." in result.stdout
    values = printed("verify", "orders")
    assert (values["whole"], values["target_topic"], values["with_timestamps"]) == (False, "old.orders", True)
    assert values["total"] == {
        **dict.fromkeys(("differing", "out_of_order", "foreign", "older", "deleted"), 0),
        **{"mirrored": 96, "missing": 2, "pending": 2, "doubled": 1},
    }
    assert values["partitions"][0]["origin"] == {"begin": 0, "end": 100}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("plan",), "Missing argument"),
        (("plan", "a b"), "is not the name of a topic"),
        (("translate", "orders"), "Missing option '--group'"),
        (("translate", "--group", "billing"), "Missing argument"),
        (("offsets", "--group", "billing", "--method", "drained"), "'drained' is not one of"),
    ],
)
def test_wrong_arguments_are_a_usage_error(words: tuple[str, ...], expected: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert expected in result.stderr
