"""``headroom reassignments``: its output, and the plan file that it writes or leaves unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headroom.cli.reassignment import command as reassignments_command
from headroom.cluster.live.running import Reassignment
from headroom.operations.reassignments.plan_file import is_plan, running_plan_text
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

ORDERS = Reassignment(TopicPartition("orders", 0), 1, (3, 2, 1), (3,), (1,))
PAYMENTS = Reassignment(TopicPartition("payments", 7), None, (1, 2, 3), (3,), ())
PLAN = (
    '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,2]},'
    '{"topic":"payments","partition":7,"replicas":[1,2,3]}]}\n'
)
MINE = '{"version":1,"partitions":[{"topic":"mine","partition":1,"replicas":[1],"log_dirs":["any"]}]}'


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[Reassignment]:
    """The reassignments that the cluster reports."""
    found = [ORDERS, PAYMENTS]
    monkeypatch.setattr(reassignments_command, "read_reassignments", lambda settings: found)
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1:9092")
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(reassignments_command.reassignments, arguments)


def test_text_has_a_row_for_each_partition(running: list[Reassignment]) -> None:
    result = run()
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert "2 reassignments are running." in result.stdout
    assert "partition replicas adding removing target leader" in rows
    assert "orders-0 3,2,1 3 1 3,2 1" in rows
    assert "payments-7 1,2,3 3 1,2,3 none" in rows


def test_json_has_all(running: list[Reassignment]) -> None:
    text = json.loads(run("--format", "json").stdout)
    assert text["reassignments"] == [
        {
            "topic": "orders",
            "partition": 0,
            "replicas": [3, 2, 1],
            "adding": [3],
            "removing": [1],
            "target": [3, 2],
            "leader": 1,
        },
        {
            "topic": "payments",
            "partition": 7,
            "replicas": [1, 2, 3],
            "adding": [3],
            "removing": [],
            "target": [1, 2, 3],
            "leader": None,
        },
    ]
    assert text["file"] is None


def test_a_long_list_of_reassignments_is_cut_with_a_count(running: list[Reassignment], tmp_path: Path) -> None:
    running[:] = [Reassignment(TopicPartition("many", p), 1, (1, 2), (2,), ()) for p in range(52)]
    result = run("--file", str(tmp_path / "move.json"))
    assert result.stdout.count("\nmany-") == 40
    assert "and 12 more" in result.stdout
    assert len(json.loads(run("--format", "json").stdout)["reassignments"]) == 52
    assert len(json.loads((tmp_path / "move.json").read_text())["partitions"]) == 52


def test_only_the_topics_that_are_named(running: list[Reassignment], tmp_path: Path) -> None:
    file = tmp_path / "move.json"
    result = run("--topic", "orders", "--file", str(file))
    assert "payments" not in result.stdout
    assert "1 reassignment is running of topic orders (of 2 in all)" in result.stdout
    assert [p["topic"] for p in json.loads(file.read_text())["partitions"]] == ["orders"]
    both = json.loads(run("--topic", "orders", "--topic", "payments", "--format", "json").stdout)
    assert len(both["reassignments"]) == 2


def test_the_file_is_kafkas_own_plan_and_the_command_that_takes_it_is_printed(
    running: list[Reassignment], tmp_path: Path
) -> None:
    file = tmp_path / "my move.json"
    result = run("--file", str(file))
    assert (result.exit_code, file.read_text()) == (0, PLAN)
    assert (
        f"kafka-reassign-partitions.sh --bootstrap-server broker1:9092 --reassignment-json-file '{file}' --cancel "
        "--preserve-throttles" in result.stdout
    )
    assert json.loads(run("--file", str(file), "--format", "json").stdout)["file"] == str(file)
    assert [path.name for path in tmp_path.iterdir()] == ["my move.json"]


def test_reassignments_that_older_tools_do_not_cancel_are_noted(running: list[Reassignment], tmp_path: Path) -> None:
    assert "1 of them only add replicas" in run("--file", str(tmp_path / "move.json")).stderr
    running.remove(PAYMENTS)
    assert run("--file", str(tmp_path / "move.json")).stderr == ""


def test_an_earlier_plan_is_replaced(running: list[Reassignment], tmp_path: Path) -> None:
    file = tmp_path / "move.json"
    file.write_text(MINE)
    assert run("--file", str(file)).exit_code == 0
    assert file.read_text() == PLAN


@pytest.mark.parametrize("content", ["", "my notes", "{}", '{"partitions":[{"topic":"t","partition":0}],"version":1}'])
def test_a_file_that_is_no_plan_is_left_alone(running: list[Reassignment], tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes"
    file.write_text(content)
    result = run("--file", str(file))
    assert isinstance(result.exception, HeadroomError)
    assert "Name another file" in result.exception.remedy
    assert file.read_text() == content


def test_a_file_that_cannot_be_written_is_an_error(running: list[Reassignment], tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "move.json"):
        assert isinstance(run("--file", str(path)).exception, HeadroomError)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert isinstance(run("--file", str(tmp_path / "binary")).exception, HeadroomError)


def test_without_running_reassignments_a_sentence_is_printed(running: list[Reassignment]) -> None:
    running.clear()
    result = run()
    assert (result.exit_code, "no reassignment is running." in result.stdout) == (0, True)
    assert json.loads(run("--format", "json").stdout)["reassignments"] == []


@pytest.mark.parametrize("arguments", [(), ("--topic", "gone"), ("--format", "json")])
def test_with_nothing_running_the_file_stays_as_it_is_and_the_next_command_does_not_run(
    running: list[Reassignment], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    if "--topic" not in arguments:
        running.clear()
    file = tmp_path / "move.json"
    result = run("--file", str(file), *arguments)
    assert isinstance(result.exception, HeadroomError)
    assert result.exit_code == 1
    assert not file.exists()
    file.write_text(MINE)
    assert run("--file", str(file), *arguments).exit_code == 1
    assert file.read_text() == MINE


def test_a_plan_file_is_recognized_by_its_content() -> None:
    assert is_plan(running_plan_text([ORDERS]))
    assert not is_plan("[" * 100_000)
    assert is_plan('{"partitions":[]}')
    for other in ("[]", "1", '{"version":2,"partitions":[]}', '{"version":1,"topics":[]}', '{"version":1}'):
        assert not is_plan(other)
    assert not is_plan('{"version":1,"partitions":[],"notes":"mine"}')
    assert not is_plan('{"version":1,"partitions":{"a":1}}')
    entry = '{"version":1,"partitions":[{"topic":"t","partition":%s,"replicas":[%s]}]}'
    assert is_plan(entry % (0, "1,2"))
    for partition, replicas in (("0.0", "1"), ("true", "1"), ("-1", "1"), ("0", '"1"'), ("0", "1.0"), ("0", "true")):
        assert not is_plan(entry % (partition, replicas))
