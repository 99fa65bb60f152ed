"""``headroom balance`` from a saved state: verdict, bands, lost goals, and changes of the cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from headroom.operations.plans.state_file import write_state
from headroom.planning.reassignments.cluster_state import ClusterState
from tests.support.paths import REPOSITORY
from tests.unit.builders.balance_states import GB, MB, broker, loads_of, saved, skewed, state_of, topic
from tests.unit.builders.commands import json_of, run_headroom, succeed

STATE = str(REPOSITORY / "docs" / "examples" / "balance_state.json")


def run(*arguments: str) -> Result:
    return run_headroom("balance", *arguments)


def output(*arguments: str) -> str:
    return succeed("balance", *arguments).output


def found(*arguments: str) -> dict[str, Any]:
    return json_of("balance", *arguments)


def test_the_first_line_is_the_verdict_and_signs_show_the_direction() -> None:
    lines = output("--state", STATE).splitlines()
    assert lines[0].startswith(
        "Cluster orders: 6 of 6 brokers are out of band; the worst is broker 2 in disk (score 0."
    )
    assert "6 of the last 6 hours, 100 % seen" in lines[1]
    (second,) = (line for line in lines if line.startswith("2       b"))
    assert "557.0 GB +" in second
    (fourth,) = (line for line in lines if line.startswith("4       a"))
    assert "11.90 MB/s -" in fourth


def test_the_command_that_proposes_names_the_settings_file() -> None:
    Path("b.toml").write_text('[cluster]\nbootstrap_servers = "broker1:9092"\n')
    assert output("--state", STATE, "--config", "b.toml").endswith(": headroom balance propose --config b.toml\n")
    assert output("--state", STATE).endswith(": headroom balance propose\n")


def test_a_saved_state_keeps_the_reads_of_every_hour(tmp_path: Path) -> None:
    state = skewed()
    hours = np.full((2, 6), 10.0 * MB)
    reads = np.array([[0.0] * 6, [20.0 * MB] * 6])
    loads = replace(loads_of(state), hours_ms=(0, 3_600_000), write=hours, read_by_hour=reads)
    sent = found("--state", saved(tmp_path, state, loads))["brokers"][0]["loads"]["network_out"]["load"]
    # 6 x 10 MB/s to its follower, and 0 or 6 x 20 to consumers: 95 % of the way from 60 to 180.
    assert sent == pytest.approx((60 + 0.95 * 120) * MB)


def test_the_json_has_loads_bands_capacities_and_scores_of_every_broker(tmp_path: Path) -> None:
    values = found("--state", saved(tmp_path, skewed()))
    first = values["brokers"][0]
    # 6 partitions on broker 1 and 2 each: a mean of 4 GB, and a band of 3.6 to 4.4.
    disk = first["loads"]["disk"]
    assert (disk["load"], disk["mean"], disk["lower"], disk["upper"]) == (6 * GB, 4 * GB, 3.6 * GB, 4.4 * GB)
    # 6 GB of replicas and 900 GB free of 1000: the rest is less than a tenth. The limit is 80 %.
    assert (disk["capacity"], disk["limit"]) == (1000 * GB, 800 * GB)
    assert first["goals"]["disk"]["score"] < 1
    assert not first["goals"]["disk"]["met"]
    # It sends 6 x (10 MB/s to its follower and 10 to consumers).
    assert first["loads"]["network_out"]["load"] == 120 * MB
    assert first["loads"]["requests"]["load"] is None
    assert {goal["goal"] for goal in values["lost_goals"]} == {
        "requests",
        "network_in_capacity",
        "network_out_capacity",
        "replica_capacity",
    }
    assert values["brokers_in_band"] == 0


def test_a_balanced_cluster_is_in_band(tmp_path: Path) -> None:
    even = state_of([broker(n) for n in (1, 2, 3)], topic("t", [[1, 2], [2, 3], [3, 1]]))
    assert output("--state", saved(tmp_path, even)).startswith("Cluster c: all 3 brokers are in band.")


def test_capacities_of_the_settings_are_limits(tmp_path: Path) -> None:
    (tmp_path / "headroom.toml").write_text('[balance]\nnetwork_in_capacity = "50MB"\nreplica_capacity = 100\n')
    values = found("--state", saved(tmp_path, skewed()))
    assert "network_in_capacity" not in {goal["goal"] for goal in values["lost_goals"]}
    # 60 MB/s come in, and 80 % of 50 MB/s are allowed.
    assert values["brokers"][0]["loads"]["network_in"]["limit"] == 40 * MB
    assert not values["brokers"][0]["goals"]["network_in_capacity"]["met"]
    assert "60.00 MB/s !" in output("--state", saved(tmp_path, skewed()))


def test_a_loss_that_takes_another_broker_over_its_limit_is_at_risk(tmp_path: Path) -> None:
    # Each broker leads 2 partitions, with 10 MB/s to a follower and 15 MB/s to consumers each. Without broker 1, the
    # other one leads all 4, and has no follower left.
    state = state_of([broker(1), broker(2)], topic("t", [(1, 2), (1, 2), (2, 1), (2, 1)]))
    file = saved(tmp_path, state, loads_of(state, read=15.0 * MB))
    # Now 2 x (10 + 15) = 50; then 4 x 15 = 60 MB/s. The limit is 0.8 x 70 = 56 MB/s.
    assert found("--state", file)["at_risk"] == []
    (tmp_path / "headroom.toml").write_text('[balance]\nnetwork_out_capacity = "70MB"\n', encoding="utf-8")
    risks = found("--state", file)["at_risk"]
    assert [(risk["lost"], risk["broker"], risk["resource"]) for risk in risks] == [
        ("broker 1", 2, "network_out"),
        ("broker 2", 1, "network_out"),
    ]
    assert risks[0]["load"] == pytest.approx(60 * MB)
    assert risks[0]["limit"] == pytest.approx(56 * MB)
    text = output("--state", file)
    assert "At risk: if broker 1 is lost, broker 2 has 60.00 MB/s network out: 4.00 MB/s above its limit" in text


def test_a_state_of_headroom_plan_has_no_reads_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    state = skewed()
    rated = [p.__class__(**{**_fields(p), "write_bytes_per_s": 10.0 * MB}) for p in state.partitions.values()]
    write_state(file, state_of(list(state.brokers.values()), rated))
    values = found("--state", str(file))
    lost = {goal["goal"]: goal["reason"] for goal in values["lost_goals"]}
    assert "read rates" in lost["network_out"]
    assert values["brokers"][0]["loads"]["network_in"]["load"] == 60 * MB
    assert values["brokers"][0]["loads"]["network_out"]["load"] is None


def _fields(placement: Any) -> dict[str, Any]:
    return {name: getattr(placement, name) for name in placement.__dataclass_fields__}


def test_goals_of_the_settings_and_of_the_option(tmp_path: Path) -> None:
    (tmp_path / "headroom.toml").write_text('[balance]\ngoals = "disk, tests.unit.cli.balance.own_goals:FewReplicas"\n')
    names = [goal["goal"] for goal in found("--state", STATE)["goals"] if not goal["hard"]]
    assert names == ["disk", "few_replicas"]
    assert "few_replicas" in output("--state", STATE)
    names = [goal["goal"] for goal in found("--state", STATE, "--goals", "leaders")["goals"] if not goal["hard"]]
    assert names == ["leaders"]


def test_a_lost_broker_and_growth_break_limits_that_are_named() -> None:
    values = found("--state", STATE, "--what-if", "lose:3", "--what-if", "grow:orders=4")["what_if"]
    assert values["changes"] == ["lose:3", "grow:orders=4"]
    assert {(broken["goal"], broken["broker"]) for broken in values["broken_limits"]} == {
        ("disk_capacity", 1),
        ("disk_capacity", 2),
    }
    assert values["brokers_counted"] == 5
    text = output("--state", STATE, "--what-if", "lose:3", "--what-if", "grow:orders=4")
    assert "Broker 1 does not meet disk_capacity: 989.0 GB, and 800.0 GB is allowed." in text


def test_brokers_missing_and_partitions_without_a_leader(tmp_path: Path) -> None:
    alone = state_of([broker(n, total=10 * GB, free=4 * GB) for n in (1, 2)], topic("t", [[1]] * 6))
    values = found("--state", saved(tmp_path, alone), "--what-if", "grow:t=3")["what_if"]
    # 18 GB: 8 of 10 GB of broker 1 (6 used and 4 free), and 3.2 of broker 2, which has 4 free. 6.8 GB are left: 3 more.
    assert values["brokers_missing"] == 3
    assert found("--state", saved(tmp_path, alone), "--what-if", "lose:1")["what_if"]["leaderless_partitions"] == 6


@pytest.mark.parametrize(("change", "unplaced"), [("lose:2", 30.0 * MB), ("drain:2", 30.0 * MB), ("lose:1", 0.0)])
def test_reads_of_the_closest_replica_that_a_change_ends_are_named(
    change: str, unplaced: float, tmp_path: Path
) -> None:
    state = skewed()
    file = saved(tmp_path, state, replace(loads_of(state), follower_reads={2: 30.0 * MB}))
    values = found("--state", file, "--what-if", change)["what_if"]
    assert values["unplaced_reads_bytes_per_s"] == unplaced
    sent = {b["broker"]: b["loads"]["network_out"]["load"] for b in values["brokers"]}
    # Without broker 1 it leads all, and sends consumers 60 MB/s besides.
    assert sent[2] == (90.0 * MB if change == "lose:1" else 0.0)
    said = "Consumers read 30.00 MB/s from brokers that then have no replica, as the closest one."
    assert (said in output("--state", file, "--what-if", change)) == (unplaced > 0)


@pytest.mark.parametrize(
    ("change", "counted"), [("lose-rack:a", 4), ("add:7@b", 7), ("add:7", 7), ("drain:4", 6), ("grow:orders=2", 6)]
)
def test_every_change(change: str, counted: int) -> None:
    assert found("--state", STATE, "--what-if", change)["what_if"]["brokers_counted"] == counted


@pytest.mark.parametrize(
    "change", ["lose", "lose:x", "lose:", "add:b@7", "grow:orders", "grow:orders=x", "shrink:1", "drain:-1"]
)
def test_a_change_that_is_none_is_wrong_use(change: str) -> None:
    done = run("--state", STATE, "--what-if", change)
    assert done.exit_code == 2
    assert "lose-rack:a" in done.output


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("lose:9", "broker 9: is unknown"),
        ("lose-rack:z", "rack z: has no broker"),
        ("add:1", "broker 1: exists"),
        ("grow:nothing=2", "topic nothing: is unknown"),
    ],
)
def test_a_change_of_something_unknown_is_an_error(change: str, rule: str) -> None:
    assert rule in str(run("--state", STATE, "--what-if", change).exception)


def test_what_is_unknown_of_a_broker_that_cannot_be_read_is_not_0(tmp_path: Path) -> None:
    """Broker 3 leads two partitions of unknown rates, of which broker 1 has replicas."""
    state = state_of([broker(n) for n in (1, 2, 3)], topic("t", [[1, 2]] * 4 + [[3, 1]] * 2))
    loads = replace(loads_of(state, [10.0 * MB] * 4 + [np.nan] * 2), unmeasured=frozenset({3}))
    file = saved(tmp_path, state, loads)
    by_broker = [
        {name: (load["load"], load["part_unknown"]) for name, load in values["loads"].items()}
        for values in found("--state", file)["brokers"]
    ]
    assert by_broker[2] == {
        "network_in": (None, True),
        "network_out": (None, True),
        "requests": (None, True),
        "disk": (2.0 * GB, False),
        "leaders": (2.0, False),
        "replicas": (2.0, False),
    }
    # Of one that counts it is what is known.
    assert (by_broker[0]["network_in"], by_broker[0]["network_out"]) == ((40.0 * MB, True), (80.0 * MB, False))
    (row,) = (line for line in output("--state", file).splitlines() if line.startswith("3 "))
    assert row.split()[1:3] == ["unknown", "unknown"]


def test_no_broker_left(tmp_path: Path) -> None:
    alone = saved(tmp_path, state_of([broker(1)], topic("t", [[1]])))
    assert "leaves no broker" in str(run("--state", alone, "--what-if", "lose:1").exception)


def test_options_before_a_subcommand_are_wrong_use() -> None:
    assert run("--state", STATE, "propose").exit_code == 2


def test_a_saved_state_gives_the_same_scores(tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    first = found("--state", STATE, "--save-state", str(again))
    assert found("--state", str(again)) == first


def test_many_brokers_are_cut_and_the_worst_come_first(tmp_path: Path) -> None:
    replicas = [[1, 2]] * 8 + [[n, n + 1] for n in range(3, 29, 2)]
    text = output("--state", saved(tmp_path, _large(replicas)))
    assert "and 10 more; --format json shows all" in text
    rows = text[text.index("Brokers") :].splitlines()
    assert {rows[2].split()[0], rows[3].split()[0]} == {"1", "2"}


def _large(replicas: list[list[int]]) -> ClusterState:
    return state_of([broker(n) for n in range(1, 31)], topic("t", replicas))


def test_all_loads_are_0(tmp_path: Path) -> None:
    state = state_of([broker(n) for n in (1, 2)], topic("t", [[1], [1], [2], [2]], size=0))
    text = output("--state", saved(tmp_path, state, loads_of(state, 0.0, 0.0)))
    assert text.startswith("Cluster c: all 2 brokers are in band.")
    assert "All loads are 0" in text
