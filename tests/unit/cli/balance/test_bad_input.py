"""Bad input of ``headroom balance``: each gives an error or a note that names subject, rule and remedy."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from headroom.planning.reassignments.cluster_state import LogDirectory
from headroom.schemas.errors import HeadroomError
from tests.support.paths import REPOSITORY
from tests.unit.builders.balance_states import GB, MB, broker, loads_of, saved, skewed, state_of, topic
from tests.unit.builders.commands import run_headroom

STATE = str(REPOSITORY / "docs" / "examples" / "balance_state.json")
OWN = "tests.unit.cli.balance.own_goals"


def run(*arguments: str) -> Result:
    return run_headroom("balance", *arguments)


def error(*arguments: str) -> str:
    done = run(*arguments)
    assert isinstance(done.exception, HeadroomError), (done.output, done.exception)
    assert done.exception.remedy
    return str(done.exception)


def notes(file: str, command: str = "propose") -> str:
    words = [command] if command else []
    done = run(*words, "--state", file, "--format", "json")
    assert done.exit_code == 0, done.exception
    return "\n".join(json.loads(done.stdout)["notes"])


def test_one_broker_is_scored_and_needs_another_for_a_proposal(tmp_path: Path) -> None:
    file = saved(tmp_path, state_of([broker(1)], topic("t", [[1], [1]])))
    assert "all 1 brokers are in band" in run("--state", file).output
    assert error("propose", "--state", file).startswith("brokers: fewer than two")


def test_no_partition(tmp_path: Path) -> None:
    file = saved(tmp_path, state_of([broker(1), broker(2)], []), loads_of(skewed()))
    (tmp_path / "state.json").write_text(
        json.dumps({k: v for k, v in json.loads(Path(file).read_text()).items() if k != "loads"})
    )
    assert error("--state", file).startswith("partitions: there are none")


def test_fewer_racks_than_replicas(tmp_path: Path) -> None:
    brokers = [broker(n, rack="ab"[n % 2]) for n in range(1, 5)]
    file = saved(tmp_path, state_of(brokers, topic("t", [[1, 2, 3]] * 4)))
    assert "There are 2 racks for up to 3 replicas" in notes(file)


def test_racks_on_some_brokers_only(tmp_path: Path) -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="b"), broker(3)]
    file = saved(tmp_path, state_of(brokers, topic("t", [[1, 2]] * 6)))
    assert "Some brokers have no rack and take no replicas, because their replicas may share any rack: 3." in notes(
        file
    )
    proposal = json.loads(run("propose", "--state", file, "--format", "json").stdout)
    assert all(action["to_broker"] != 3 for action in proposal["actions"])


def test_no_rack_at_all(tmp_path: Path) -> None:
    assert "No broker has a rack" in notes(saved(tmp_path, skewed()))


@pytest.mark.parametrize("total", [None, 0])
def test_a_capacity_that_is_missing_or_0(total: int | None, tmp_path: Path) -> None:
    other = replace(broker(3), log_dirs=(LogDirectory("/kafka", total, total),))
    file = saved(tmp_path, state_of([broker(1), broker(2), other], topic("t", [[1, 2]] * 6)))
    text = notes(file)
    assert "The disk capacity of some brokers is missing or 0 and limits nothing there: 3." in text
    none = state_of([replace(b, log_dirs=()) for b in (broker(1), broker(2))], topic("t", [[1], [1]]))
    lost = json.loads(run("--state", saved(tmp_path, none), "--format", "json").stdout)["lost_goals"]
    assert "disk_capacity" in {goal["goal"] for goal in lost}


def test_a_capacity_of_the_settings_that_is_0(tmp_path: Path) -> None:
    (tmp_path / "headroom.toml").write_text("[balance]\nnetwork_in_capacity = 0\n")
    assert "balance.network_in_capacity" in error("--state", STATE)


def test_all_loads_are_0(tmp_path: Path) -> None:
    state = state_of([broker(n) for n in (1, 2)], topic("t", [[1]] * 6, size=0))
    file = saved(tmp_path, state, loads_of(state, 0.0, 0.0))
    assert "All loads are 0: only leaders and replicas can be balanced." in notes(file)


def test_one_hour_of_history(tmp_path: Path) -> None:
    state = skewed()
    loads = replace(loads_of(state), wanted_hours=24, hours_ms=(1_795_561_200_000,))
    assert "The history has 1 hour of the 24 of balance.history" in notes(saved(tmp_path, state, loads))


def test_a_partition_larger_than_any_free_disk(tmp_path: Path) -> None:
    brokers = [broker(n, free=20 * GB, total=800 * GB) for n in (1, 2, 3)]
    state = state_of(brokers, [*topic("huge", [[1]], size=500 * GB), *topic("small", [[1]] * 6, size=GB)])
    file = saved(tmp_path, state)
    assert "huge-0: larger than the free bytes of any log directory, so not moved." in notes(file)
    proposal = json.loads(run("propose", "--state", file, "--format", "json").stdout)
    assert "huge" not in {action["topic"] for action in proposal["actions"]}


def test_an_offline_and_a_cordoned_log_directory(tmp_path: Path) -> None:
    offline = replace(broker(2), log_dirs=(LogDirectory("/a", 100 * GB, 90 * GB), LogDirectory("/b", offline=True)))
    cordoned = replace(broker(3), log_dirs=(LogDirectory("/a", 100 * GB, 90 * GB, cordoned=True),))
    file = saved(tmp_path, state_of([broker(1), offline, cordoned, broker(4)], topic("t", [[1, 4]] * 6)))
    text = notes(file)
    assert "Broker 2 takes nothing: a log directory is offline." in text
    assert "Broker 3 takes nothing: cordoned." in text
    proposal = json.loads(run("propose", "--state", file, "--format", "json").stdout)
    assert {action["to_broker"] for action in proposal["actions"]}.isdisjoint({2, 3})


@pytest.mark.parametrize(
    ("goal", "rule"),
    [("Raises", "goal raises: failed with RuntimeError"), ("NotANumber", "score nan"), ("Two", "score 2.0")],
)
@pytest.mark.parametrize("command", [(), ("propose",)])
def test_a_goal_that_fails_stops_by_its_name(goal: str, rule: str, command: tuple[str, ...]) -> None:
    assert rule in error(*command, "--state", STATE, "--goals", f"disk,{OWN}:{goal}")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--goals", "dsk"), "'dsk' is unknown"),
        (("--goals", "no.such:Goal"), "cannot be loaded"),
        (("--goals", "builtins:dict"), "is not a goal"),
        (("--topics", "nothing"), "topic nothing: is unknown"),
        (("--exclude", "nothing"), "topic nothing: is unknown"),
        (("--exclude", "broker:9"), "broker 9: is unknown"),
        (("--until-in-band", "9"), "broker 9: is unknown"),
        (("--topics", "logs", "--exclude", "logs"), "all chosen topics are excluded"),
        (("--goals", "requests"), "goal requests: no broker reports requests by topic"),
    ],
)
def test_unknown_names_and_choices_that_allow_nothing_are_errors(arguments: tuple[str, ...], rule: str) -> None:
    assert rule in error("propose", "--state", STATE, *arguments)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--max-bytes", "10"), "Was 10GB meant?"),
        (("--max-bytes", "0"), "above 0"),
        (("--max-bytes", "ten"), "'ten' is not an amount of bytes"),
        (("--max-bytes", "1,5GB"), "Write 1.5GB: a comma is not a decimal point here."),
        (("--max-bytes", "5GB/s"), "is not an amount of bytes"),
        (("--max-moves", "1_0"), "Write 10: digits are written together."),
        (("--prefix", "２"), "Write 2: only the digits 0 to 9"),
        (("--exclude", "logs,logs"), "names logs twice"),
        (("--max-moves", "0"), "must be at least 1"),
        (("--throttle", "10"), "Was 10MB meant?"),
        (("--finish-within", "0"), "more than nothing"),
        (("--exclude", "broker:x"), "such as payments,broker:3"),
        (("--until-in-band", "one"), "'one' is not a list of broker ids"),
        (("--until-in-band", "1", "--prefix", "2"), "give one of them"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], rule: str) -> None:
    done = run("propose", "--state", STATE, *arguments)
    assert done.exit_code == 2
    assert rule in done.output


def test_a_throttle_that_allows_no_copy_names_what_is_left_out() -> None:
    proposal = json.loads(run("propose", "--state", STATE, "--throttle", "1MB", "--format", "json").stdout)
    assert all(action["copied_bytes"] == 0 for action in proposal["actions"])
    assert {left["reason"] for left in proposal["left_out"]} == {"over_throttle"}


def test_unknown_writes_give_scores_of_disk_and_no_proposal(tmp_path: Path) -> None:
    state = skewed()
    file = saved(tmp_path, state, loads_of(state, np.nan, np.nan))
    values = json.loads(run("--state", file, "--format", "json").stdout)
    assert {"network_in", "network_out"} <= {goal["goal"] for goal in values["lost_goals"]}
    assert values["brokers"][0]["goals"]["disk"]["score"] < 1
    assert "are unknown for all partitions" in error("propose", "--state", file)


def test_a_partition_of_unknown_load_stays_where_it_is(tmp_path: Path) -> None:
    state = skewed()
    file = saved(tmp_path, state, loads_of(state, [np.nan, *[10.0 * MB] * 5]))
    assert "The rates or the size of 1 partition are unknown, such as orders-0." in notes(file)
    proposal = json.loads(run("propose", "--state", file, "--format", "json").stdout)
    assert {"reason": "unknown_load", "partitions": 1}.items() <= proposal["left_out"][0].items()


def test_sizes_that_are_unknown_leave_elections(tmp_path: Path) -> None:
    state = state_of([replace(broker(n), log_dirs=()) for n in (1, 2, 3)], topic("t", [[1, 2]] * 6, size=None))
    values = json.loads(run("propose", "--state", saved(tmp_path, state), "--format", "json").stdout)
    assert {"disk", "disk_capacity"} <= {goal["goal"] for goal in values["lost_goals"]}
    # Broker 1 leads all 6, and broker 2 follows.
    assert [(action["kind"], action["to_broker"]) for action in values["actions"]] == [("elect", 2)] * 3
    assert any(
        note.endswith("Where only sizes are unknown, brokers take leads and no replicas: 1, 2.")
        for note in values["notes"]
    )
    assert all(action["copied_bytes"] == 0 for action in values["actions"])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not a saved state"),
        ('{"version":1,"brokers":[],"partitions":[],"loads":3}', "loads is not an object"),
        ('{"version":1,"brokers":[],"partitions":[],"loads":{"wanted_hours":"x"}}', "not numbers by partition"),
    ],
)
def test_a_file_that_is_no_state(text: str, rule: str, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(text)
    assert rule in error("--state", str(file))
    assert "cannot be read" in error("--state", str(tmp_path / "missing.json"))


def test_loads_that_do_not_fit_their_partitions(tmp_path: Path) -> None:
    file = Path(saved(tmp_path, skewed()))
    found = json.loads(file.read_text())
    one, six = (base64.b64encode(struct.pack(f"<{count}d", *[1.0] * count)).decode() for count in (1, 6))
    for name, wrong in (("read_bytes_per_s", one), ("requests_per_s_by_hour", [six] * 2)):
        file.write_text(json.dumps({**found, "loads": {**found["loads"], name: wrong}}))
        assert "for 1 hours and 6 partitions" in error("--state", str(file))
