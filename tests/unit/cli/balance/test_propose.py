"""``headroom balance propose`` and ``explain`` from a saved state: gain, price, batches, files."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import Result

from headroom.cli.balance import loading
from headroom.cli.balance.proposal import command as command_module
from headroom.cli.balance.proposal import explain as explain_module
from headroom.dashboard.acting.curve import curve_of
from headroom.operations.balance import proposal_result
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.saved_state import read_loads, write_loads
from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.batches.batches import BalanceBatch
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.pricing import price as price_module
from headroom.planning.balance.pricing.price import batch_price
from headroom.planning.balance.search.limits import ProposalLimits
from headroom.planning.balance.search.proposal import Proposal, propose
from headroom.planning.elections.election_file import parse_request
from headroom.planning.reassignments.plan import parse_plan
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import size_text
from tests.support.paths import REPOSITORY
from tests.unit.builders.balance_states import GB, MB, broker, saved, skewed, state_of, topic
from tests.unit.builders.commands import run_headroom, succeed

STATE = str(REPOSITORY / "docs" / "examples" / "balance_state.json")


def run(*arguments: str) -> Result:
    return run_headroom("balance", *arguments)


def output(*arguments: str) -> str:
    return succeed("balance", *arguments).stdout


def proposed(*arguments: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(output("propose", *arguments, "--format", "json"))
    return values


def test_the_proposal_states_what_it_gains_and_copies() -> None:
    values = proposed("--state", STATE)
    actions = values["actions"]
    assert [action["number"] for action in actions] == list(range(1, len(actions) + 1))
    assert values["outside_before"] - sum(action["gain"] for action in actions) == pytest.approx(
        actions[-1]["outside_after"]
    )
    copied = sum(action["copied_bytes"] for action in actions)
    assert actions[-1]["copied_bytes_after"] == copied == sum(batch["copied_bytes"] for batch in values["batches"])
    assert values["after"]["brokers_in_band"] >= values["before"]["brokers_in_band"]
    assert values["prefixes"][-1]["actions"] == len(actions)
    gains = [row["gain_ratio"] for row in values["prefixes"]]
    assert gains == sorted(gains)


def test_elections_copy_nothing_and_come_first() -> None:
    values = proposed("--state", STATE, "--elections-only")
    assert {action["kind"] for action in values["actions"]} == {"elect"}
    (batch,) = values["batches"]
    assert (batch["kind"], batch["copied_bytes"], batch["throttle_bytes_per_s"]) == ("elections", 0, None)
    assert values["throttle_bytes_per_s"] is None
    for before, after in zip(batch["rollback"]["partitions"], batch["plan"]["partitions"], strict=True):
        assert sorted(before["replicas"]) == sorted(after["replicas"])
    text = output("propose", "--state", STATE, "--elections-only")
    assert "copy nothing." in text
    assert "copies could" in text


def test_the_first_actions_that_bring_brokers_into_band_are_the_fewest_that_do(tmp_path: Path) -> None:
    # 12 partitions of 10 MB/s: broker 1 has 9 of them, and the two other brokers the rest.
    replicas = [(1,)] * 9 + [(2,)] * 2 + [(3,)]
    state = saved(tmp_path, state_of([broker(n) for n in (1, 2, 3)], topic("t", replicas)))
    whole = proposed("--state", state)
    assert whole["until_in_band"] is None
    chosen = {}
    for own in (1, 2, 3):
        values = proposed("--state", state, "--until-in-band", str(own))
        assert values["until_in_band"] == {"brokers": [own], "reached": True}
        assert values["actions"] == whole["actions"]
        assert sum(batch["actions"] for batch in values["batches"]) == values["chosen_actions"]
        assert _in_band(values["after"], own)
        chosen[own] = values["chosen_actions"]
    # 4 partitions each: broker 1 gives 5, of which broker 2 gets 2 and broker 3 gets 3.
    assert chosen[1] == len(whole["actions"]) == 5
    assert min(chosen[2], chosen[3]) < 5
    shorter = proposed("--state", state, "--prefix", str(chosen[2] - 1))
    assert not _in_band(shorter["after"], 2)


def test_brokers_that_no_prefix_brings_into_band_get_the_whole_proposal_and_a_warning() -> None:
    values = proposed("--state", STATE, "--until-in-band", "1,2,3,4,5,6", "--max-bytes", "60GB")
    assert values["until_in_band"] == {"brokers": [1, 2, 3, 4, 5, 6], "reached": False}
    assert values["chosen_actions"] == len(values["actions"])
    assert values["warnings"][0].startswith("No prefix brings all of these brokers into their bands: 1, 2, 3, 4, 5, 6.")


def _in_band(card: dict[str, Any], broker: int) -> bool:
    (goals,) = (entry["goals"] for entry in card["brokers"] if entry["broker"] == broker)
    return all(goals[name]["met"] for name in ("network_in", "network_out", "disk", "disk_capacity"))


def test_limits_narrow_the_proposal() -> None:
    everything = proposed("--state", STATE)
    few = proposed("--state", STATE, "--max-bytes", "60GB", "--max-moves", "4")
    assert few["actions"][-1]["copied_bytes_after"] <= 60 * GB
    assert sum(action["copied_bytes"] > 0 for action in few["actions"]) <= 4
    assert len(few["actions"]) < len(everything["actions"])
    assert "--max-bytes" in " ".join(few["warnings"])
    orders = proposed("--state", STATE, "--topics", "orders", "--exclude", "broker:3")
    assert {action["topic"] for action in orders["actions"]} == {"orders"}
    assert all(3 not in (action["from_broker"], action["to_broker"]) for action in orders["actions"])
    assert {left["reason"]: left["partitions"] for left in orders["left_out"]} == {"topic": 16}
    assert "Left out: broker 3, because it is excluded." in output("propose", "--state", STATE, "--exclude", "broker:3")
    without = proposed("--state", STATE, "--exclude", "orders,payments")
    assert {action["topic"] for action in without["actions"]} <= {"logs"}


def test_the_throttle_is_given_or_for_the_deadline_or_in_force_or_the_capacity_or_recommended(tmp_path: Path) -> None:
    given = proposed("--state", STATE, "--throttle", "80MB")
    assert (given["throttle_from"], given["throttle_bytes_per_s"]) == ("given", 80 * MB)
    deadline = proposed("--state", STATE, "--finish-within", "4h")
    assert deadline["throttle_from"] == "deadline"
    assert deadline["duration_s"] <= 4 * 3600
    slower = proposed("--state", STATE, "--finish-within", "12h")
    assert slower["throttle_bytes_per_s"] < deadline["throttle_bytes_per_s"]
    recommended = proposed("--state", STATE)
    assert recommended["throttle_from"] == "recommended"
    assert recommended["throttle_bytes_per_s"] == max(
        batch["throttle_after_switch_bytes_per_s"] or 0 for batch in recommended["batches"]
    )
    state = skewed(leader_bytes_per_s=90 * MB, follower_bytes_per_s=80 * MB)
    in_force = proposed("--state", saved(tmp_path, state))
    assert (in_force["throttle_from"], in_force["throttle_bytes_per_s"]) == ("in_force", 80 * MB)
    (tmp_path / "headroom.toml").write_text('[cluster]\nreplication_capacity = "75MB"\n')
    capacity = proposed("--state", STATE)
    assert (capacity["throttle_from"], capacity["throttle_bytes_per_s"]) == ("capacity", 75 * MB)
    late = proposed("--state", STATE, "--finish-within", "5m")
    assert (late["misses_deadline"], late["throttle_bytes_per_s"]) == (True, 75 * MB)
    # Sooner than any throttle allows, because each batch takes a moment after its last byte.
    never = proposed("--state", STATE, "--finish-within", "0.1")
    assert (never["misses_deadline"], never["throttle_bytes_per_s"]) == (True, 75 * MB)
    assert "meets --finish-within" in late["warnings"][0]


def test_times_have_the_readings_and_pauses_of_a_run(tmp_path: Path) -> None:
    values = proposed("--state", STATE, "--throttle", "10GB")
    batches = values["batches"]
    # Two readings of 5 s before each batch, and 10 s between two.
    overhead_s = 10 * len(batches) + 10 * (len(batches) - 1)
    assert values["duration_s"] == pytest.approx(sum(batch["duration_s"] for batch in batches) + overhead_s)
    assert values["prefixes"][-1]["duration_s"] == values["duration_s"]
    assert not any("--finish-within" in warning for warning in values["warnings"])
    late = proposed("--state", STATE, "--throttle", "10GB", "--finish-within", str(overhead_s))
    assert "longer than --finish-within" in late["warnings"][0]
    # Without a capacity of replication, that of the network is what brokers can carry.
    (tmp_path / "headroom.toml").write_text(
        '[balance]\nnetwork_out_capacity = "800MB"\nnetwork_in_capacity = "900MB"\n'
    )
    fast = proposed("--state", STATE, "--finish-within", str(overhead_s + 20))
    assert (fast["misses_deadline"], fast["throttle_bytes_per_s"]) == (True, 800 * MB)
    assert "meets --finish-within" in fast["warnings"][0]


def test_a_batch_has_a_lower_throttle_where_a_broker_has_no_room_for_more(tmp_path: Path) -> None:
    (tmp_path / "headroom.toml").write_text('[balance]\nnetwork_out_capacity = "200MB"\nnetwork_in_capacity = "1GB"\n')
    values = proposed("--state", STATE, "--throttle", "10GB", "--dir", "out")
    copying = [batch for batch in values["batches"] if batch["copied_replicas"]]
    assert values["throttle_bytes_per_s"] == 10_000 * MB
    # Brokers may send 160 MB/s.
    assert all(batch["throttle_bytes_per_s"] <= batch["run_throttle_bytes_per_s"] < 160 * MB for batch in copying)
    notes = [text for text in values["warnings"] if "would exceed its limit of the network while it copies" in text]
    assert len(notes) == len(copying)
    document = json.loads((Path("out") / "proposal.json").read_text())
    rates = [batch["run_throttle_bytes_per_s"] for batch in values["batches"]]
    assert [batch["run_throttle_bytes_per_s"] for batch in document["batches"]] == rates
    assert [rate is None for rate in rates] == [not batch["copied_replicas"] for batch in values["batches"]]


def test_rates_in_force_are_named_that_brokers_have_no_room_for(tmp_path: Path) -> None:
    """A run lowers no rate, so batches would copy with it instead of the lower throttle that they have room for."""
    (tmp_path / "headroom.toml").write_text('[balance]\nnetwork_out_capacity = "200MB"\nnetwork_in_capacity = "1GB"\n')
    state, loads, _ = read_loads(Path(STATE))
    for rate, is_named in ((10_000 * MB, True), (1 * MB, False)):
        in_force = {b: replace(own, leader_bytes_per_s=rate) for b, own in state.brokers.items()}
        write_loads(tmp_path / f"{rate}.json", replace(state, brokers=in_force), loads)
        values = proposed("--state", str(tmp_path / f"{rate}.json"))
        notes = [text for text in values["warnings"] if "is in force on" in text]
        assert len(notes) == is_named * sum(batch["copied_replicas"] > 0 for batch in values["batches"])
        assert all("a run lowers none" in text for text in notes)


def test_a_prefix_makes_batches_of_the_first_actions() -> None:
    values = proposed("--state", STATE, "--prefix", "6")
    assert values["chosen_actions"] == 6
    assert sum(batch["actions"] for batch in values["batches"]) == 6
    assert len(values["actions"]) > 6
    assert "The first 6 of" in output("propose", "--state", STATE, "--prefix", "6")
    assert "--prefix: is 1000" in str(run("propose", "--state", STATE, "--prefix", "1000").exception)


def test_times_of_other_prefixes_are_those_at_their_own_throttle() -> None:
    """The first prefix elects only, and has no throttle, with which the others would never end."""
    whole = proposed("--state", STATE)["prefixes"]
    first = proposed("--state", STATE, "--prefix", str(whole[0]["actions"]))
    assert (first["throttle_bytes_per_s"], first["prefixes"][0]["copied_bytes"]) == (None, 0)
    assert first["prefixes"][1:-1] == whole[1:-1]
    # That of all actions is simulated only where it is chosen.
    assert first["prefixes"][-1]["duration_s"] > 0


def test_nothing_has_to_change_in_a_balanced_cluster(tmp_path: Path) -> None:
    even = state_of([broker(n) for n in (1, 2, 3)], topic("t", [[1, 2], [2, 3], [3, 1]]))
    file = saved(tmp_path, even)
    assert "Nothing has to change." in output("propose", "--state", file)
    values = proposed("--state", file, "--dir", "out")
    assert (values["actions"], values["batches"]) == ([], [])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["proposal.json"]


def test_a_proposal_that_was_carried_out_leaves_no_action(tmp_path: Path) -> None:
    values = proposed("--state", saved(tmp_path, skewed()))
    after = {}
    for batch in values["batches"]:
        for target in batch["plan"]["partitions"]:
            after[target["partition"]] = target["replicas"]
    replicas = [after.get(number, [1, 2]) for number in range(6)]
    moved = state_of([broker(n) for n in (1, 2, 3)], topic("orders", replicas))
    assert values["after"]["brokers_in_band"] == 3
    assert proposed("--state", saved(tmp_path, moved))["actions"] == []


def test_files_are_those_of_kafkas_tools_and_commands_run_them(tmp_path: Path) -> None:
    (tmp_path / "headroom.toml").write_text('[cluster]\nbootstrap_servers = "broker1:9092"\n')
    text = output("propose", "--state", STATE, "--finish-within", "6h", "--dir", "out", "--config", "headroom.toml")
    values = json.loads((tmp_path / "out" / "proposal.json").read_text())
    for number, batch in enumerate(values["batches"], start=1):
        plan = parse_plan((tmp_path / "out" / f"batch-{number:02d}.json").read_text(), "plan")
        back = parse_plan((tmp_path / "out" / f"rollback-{number:02d}.json").read_text(), "rollback")
        assert plan.by_name.keys() == back.by_name.keys()
        assert plan.fingerprint({"orders": "AAAA", "payments": "BBBB", "logs": "CCCC"}) == batch["fingerprint"]
        throttle = f" --throttle {values['throttle_bytes_per_s']}" if batch["copied_bytes"] else ""
        command = (
            f"  $ headroom reassign run out/batch-{number:02d}.json{throttle} --fingerprint {batch['fingerprint']} "
            "--config headroom.toml --execute"
        )
        assert command in text.splitlines()
    names = parse_request((tmp_path / "out" / "elections-01.json").read_text(), "elections")
    assert [{"topic": t, "partition": p} for t, p in names] == values["batches"][0]["elections"]
    assert "  $ headroom elections --file out/elections-01.json --config headroom.toml --execute" in text
    assert "kafka-leader-election.sh --bootstrap-server broker1:9092" in text
    assert f"headroom reassign run out/rollback-{len(values['batches']):02d}.json" in text


def test_files_of_another_proposal_stay(tmp_path: Path) -> None:
    output("propose", "--state", STATE, "--dir", "out")
    before = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    # The same proposal again is no other one.
    output("propose", "--state", STATE, "--dir", "out")
    done = run("propose", "--state", STATE, "--max-moves", "2", "--dir", "out")
    assert isinstance(done.exception, HeadroomError)
    assert "belongs to another proposal" in str(done.exception)
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == before
    (tmp_path / "file").write_text("")
    assert "cannot be written to" in str(run("propose", "--state", STATE, "--dir", "file/out").exception)


def test_a_chart(tmp_path: Path) -> None:
    output("propose", "--state", STATE, "--plot", "gain.svg")
    assert "Gain by bytes copied" in (tmp_path / "gain.svg").read_text(encoding="utf-8")
    even = saved(tmp_path, state_of([broker(n) for n in (1, 2)], topic("t", [[1], [2]])))
    assert "no action to draw" in str(run("propose", "--state", even, "--plot", "gain.svg").exception)


def test_a_saved_state_is_not_stored(tmp_path: Path) -> None:
    (tmp_path / "headroom-data").mkdir()
    output("propose", "--state", STATE)
    assert list((tmp_path / "headroom-data").iterdir()) == []


def test_the_text_names_what_an_operator_decides_by() -> None:
    text = output("propose", "--state", STATE, "--throttle", "30MB")
    for part in (
        "Prefixes: every one is a valid plan",
        "gain per GB",
        "peak disk",
        "after a leader switch",
        "(chosen)",
    ):
        assert part in text
    assert "Throttle: 30.00 MB/s (--throttle)." in text
    assert "survives any." in text
    assert "Nothing was changed." in text


def test_each_batch_is_priced_once_and_the_gains_of_all_actions_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches = len(proposed("--state", STATE, "--finish-within", "6h")["batches"])
    gains_of, calls = vars(Proposal)["gains"].fget, {"gains": 0, "prices": 0}

    def gains(proposal: Proposal) -> FloatArray:
        calls["gains"] += 1
        found: FloatArray = gains_of(proposal)
        return found

    def price(batch: BalanceBatch) -> price_module.BatchPrice:
        calls["prices"] += 1
        return batch_price(batch)

    monkeypatch.setattr(Proposal, "gains", property(gains))
    monkeypatch.setattr(price_module, "batch_price", price)
    output("propose", "--state", STATE, "--finish-within", "6h")
    assert calls == {"gains": 1, "prices": batches}


def test_one_action_is_explained_goal_by_goal() -> None:
    actions = proposed("--state", STATE)["actions"]
    for number in (1, len(actions)):
        values = json.loads(output("explain", str(number), "--state", STATE, "--format", "json"))
        action = actions[number - 1]
        assert values["action"].items() <= action.items()
        assert values["gain"] == action["gain"] == pytest.approx(values["outside_before"] - values["outside_after"])
        for goal in values["goals"]:
            assert goal["score"] == pytest.approx((min(goal["after"]) - min(goal["before"]) + 1) / 2)
            # A limit that was kept is kept.
            assert not goal["hard"] or all(goal["holds"]) or goal["held"] == goal["holds"]
        # What one gives, the other takes; percentiles of sums differ by a little.
        disk = values["loads"]["disk"]
        assert sum(disk["after"]) == pytest.approx(sum(disk["before"]))
    text = output("explain", "1", "--state", STATE)
    assert text.startswith("Action 1 of ")
    assert "nothing is copied." in text
    assert "better" in text
    assert "action 99: is not in the proposal" in str(run("explain", "99", "--state", STATE).exception)


def test_a_saved_proposal_is_explained_without_another_search(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--max-bytes", "200GB", "--exclude", "payments,broker:3")
    explained = json.loads(output("explain", "2", "--state", STATE, *options, "--format", "json"))
    assert proposed("--state", STATE, *options, "--save-state", "state.json")["actions"]
    searches: list[ProposalLimits] = []

    def searched(model: ClusterModel, goals: Sequence[BalanceGoal], limits: ProposalLimits) -> Proposal:
        searches.append(limits)
        return propose(model, goals, limits)

    monkeypatch.setattr(proposal_result, "propose", searched)
    assert json.loads(output("explain", "2", "--state", "state.json", *options, "--format", "json")) == explained
    assert not searches
    # Another proposal.
    output("explain", "2", "--state", "state.json", "--goals", "disk", *options)
    output("explain", "2", "--state", "state.json")
    assert len(searches) == 2


def test_a_state_for_which_nothing_can_be_proposed_is_saved(tmp_path: Path) -> None:
    assert "--prefix: is 999" in str(run("propose", "--state", STATE, "--prefix", "999", "--save-state", "s").exception)
    assert read_loads(tmp_path / "s")[2] is None


@pytest.mark.parametrize(("module", "words"), [(command_module, ("propose",)), (explain_module, ("explain", "1"))])
def test_no_garbage_is_collected_from_what_is_read(
    module: ModuleType, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[bool] = []

    def load_cluster(*arguments: Any) -> BalanceCluster:
        collected.append(gc.isenabled())
        return loading.load_cluster(*arguments)

    monkeypatch.setattr(module, "load_cluster", load_cluster)
    gc.enable()
    output(*words, "--state", STATE)
    assert collected == [False]


@pytest.mark.parametrize("command", [("--help",), ("propose", "--help"), ("explain", "--help"), ("status", "--help")])
def test_help_has_an_example(command: tuple[str, ...]) -> None:
    assert "Example:  headroom balance" in output(*command)


def test_the_page_cuts_a_proposal_by_its_file(tmp_path: Path) -> None:
    actions = proposed("--state", STATE, "--prefix", "6", "--dir", "proposal")["actions"]
    curve = curve_of(tmp_path)
    assert curve is not None
    assert (curve.actions, curve.chosen, len(curve.rows)) == (len(actions), 6, len(actions))
    last = curve.rows[-1]
    assert (last.kind, last.copied) == (actions[-1]["kind"], size_text(actions[-1]["copied_bytes_after"]))
