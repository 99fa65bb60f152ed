"""Faults of the page that were found by trying to break it, and that are not to come back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from headroom.dashboard.acting import actions as actions_module
from headroom.dashboard.acting import made
from headroom.dashboard.acting.actions import ActionProgress, Actions
from headroom.dashboard.acting.allowed import allowed_command
from headroom.dashboard.app import create_app
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from tests.unit.builders.acting import CONFIG, ORIGIN, Clock, Program, offer, until, when_ended
from tests.unit.builders.dashboard_store import CLUSTER, HOSTS, TICK_MS, Client, DashboardStore, new_replica
from tests.unit.builders.throttle_status import status
from tests.unit.dashboard.markup import Markup

MOVE = "headroom plan --drain 3 --config orders.toml"


def test_two_servers_carry_an_action_out_once(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Actions(str(store.path), program.command_line, clock)
    action_id = actions.begin(offer())
    when_ended(actions, action_id)

    def meanwhile(**_: bool) -> None:
        actions.change(action_id)
        when_ended(actions, action_id)

    monkeypatch.setattr(other, "_require_room", meanwhile)
    with pytest.raises(HeadroomError):
        other.change(action_id)
    when_ended(other, action_id)
    assert sum("--execute" in call for call in program.calls()) == 1


def test_a_second_stop_is_not_a_second_ctrl_c(actions: Actions, program: Program) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    program.waits()
    actions.change(action_id)
    until(lambda: "one" in actions.read(action_id).output)
    actions.stop(action_id)
    with pytest.raises(HeadroomError, match="is stopping already"):
        actions.stop(action_id)


def test_a_plan_that_does_not_fit_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"next_commands": [], "fingerprint": "f"}))
    reads: list[str] = []
    loads = json.loads

    class Json:
        @staticmethod
        def loads(text: str) -> object:
            reads.append(text)
            return loads(text)

    monkeypatch.setattr(made, "json", Json)
    command = allowed_command(MOVE, CONFIG)
    assert command is not None
    for _ in range(3):
        assert command.change_text(tmp_path) is None
    assert len(reads) == 1


def test_a_proposal_with_a_low_throttle_is_carried_out_with_the_flag_that_it_needs(tmp_path: Path) -> None:
    command = allowed_command("headroom balance propose --throttle 500kB --config orders.toml", CONFIG)
    (tmp_path / "proposal").mkdir()
    assert command is not None
    for copied, rate, is_low in ((1, 500_000, True), (0, 500_000, False), (1, 5_000_000, False), (0, None, False)):
        proposal = {"throttle_bytes_per_s": rate, "batches": [{"copied_replicas": copied}]}
        (tmp_path / "proposal" / "proposal.json").write_text(json.dumps(proposal))
        made._options.cache_clear()
        assert ("--low-rate" in (command.change(tmp_path) or [])) is is_low


def test_a_move_is_not_gone_on_with_a_year_later(actions: Actions, program: Program, clock: Clock) -> None:
    program.makes()
    action_id = actions.begin(offer(MOVE))
    when_ended(actions, action_id)
    program.ends_with(1)
    actions.change(action_id)
    when_ended(actions, action_id)
    clock.ms += 365 * 86_400_000
    assert not actions.read(action_id).goes_on


def test_a_plan_is_the_same_by_another_path_of_the_store(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock, tmp_path: Path
) -> None:
    program.makes()
    action_id = actions.begin(offer(MOVE))
    when_ended(actions, action_id)
    (tmp_path / "link").symlink_to(store.path)
    assert Actions(str(tmp_path / "link"), program.command_line, clock).read(action_id).progress is ActionProgress.SHOWN


@pytest.mark.parametrize("cluster", ["", "x" * 301])
def test_a_form_of_a_cluster_that_there_cannot_be_is_refused(client: Client, cluster: str) -> None:
    assert client.get(f"/new/move?cluster={cluster}").status_code in (404, 422)
    answer = client.post("/new/move", json={"cluster": cluster, "values": {}}, headers=ORIGIN)
    assert answer.status_code in (404, 422)


def test_a_field_with_half_a_character_is_refused(client: Client) -> None:
    content = b'{"cluster":"prod","values":{"\\ud800":"x"}}'
    headers = {**ORIGIN, "content-type": "application/json"}
    assert client.post("/new/move", content=content, headers=headers).status_code == 422


def test_health_of_a_past_moment_says_nothing_of_later_ticks(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10))
    store.tick_ends({}, {"tick_ms": TICK_MS + 30_000})
    assert "08:00:30" not in store.client(TICK_MS + 60_000).get(f"/health?at={TICK_MS}").text


def test_health_of_a_past_moment_does_not_take_the_watch_of_now_for_that_of_then(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10), tick_ms=TICK_MS - 3_600_000)
    store.throttles(status(1, Role.LEADER, 12, 10))
    for query, name in (("", "Evaluation"), (f"?at={TICK_MS - 1_800_000}", "Evaluation now")):
        page = Markup(store.client().get(f"/health{query}").text)
        terms = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
        assert terms[name] == "Cluster prod: last evaluated 0 s ago."


def test_health_has_ends_of_ticks_of_a_cluster_with_another_script(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10), cluster="café")
    store.tick_ends({"cluster": "café"})
    page = Client(create_app(store.site(TICK_MS, cluster="café"), HOSTS)).get("/health").text
    assert "tick of 2027-01-15" in page


def test_brokers_that_are_no_numbers_do_not_end_health(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10))
    store.tick_ends({"unanswered": [{"broker": 1, "reason": "a"}, {"broker": "x", "reason": "b"}]})
    assert store.client().get("/health").status_code == 200


def test_a_damaged_journal_does_not_take_the_throttle_of_a_broker(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10))
    store.journal({})
    for file in (store.path / "actions" / "journal").rglob("*.parquet"):
        file.unlink()
    assert "This cannot be shown" not in store.client().get("/throttles?broker=1").text


def test_the_command_that_began_a_move_is_in_its_chart(store: DashboardStore) -> None:
    for tick_ms in range(TICK_MS, TICK_MS + 60_000, 5000):
        store.throttles(status(1, Role.LEADER, 12, 10), tick_ms=tick_ms)
        store.replicas(new_replica(), tick_ms=tick_ms)
    store.journal({"at_ms": TICK_MS - 2000})
    assert "annotation-command" in store.client(TICK_MS + 60_000).get(f"/timeline?cluster={CLUSTER}").text


def test_a_copy_that_hardly_gains_has_a_chart_of_some_labels(store: DashboardStore) -> None:
    for tick_ms, eta_s in ((TICK_MS, 60.0), (TICK_MS + 10_000, 5e7)):
        store.throttles(status(1, Role.LEADER, 12, 10), tick_ms=tick_ms)
        store.replicas(new_replica(eta_s=eta_s), tick_ms=tick_ms)
    assert len(store.client(TICK_MS + 10_000).get("/timeline").text) < 60_000


def test_a_store_in_which_others_can_exchange_folders_is_not_acted_in(
    store: DashboardStore, actions: Actions, program: Program
) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    store.path.chmod(0o777)
    with pytest.raises(LookupError):
        actions.change(action_id)
    with pytest.raises(HeadroomError, match="others can write there"):
        actions.begin(offer())
    # As of a folder for temporary files: only the owner of a file renames it.
    store.path.chmod(0o1777)
    actions.change(action_id)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE


def test_what_a_worker_runs_is_not_read_from_a_folder(actions: Actions, store: DashboardStore) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    names = {path.name for path in (store.path / "_actions" / action_id / "look").iterdir()}
    assert names == {"began.json", "lock", "output.txt", "process.json", "result.json"}


def test_no_module_of_the_working_directory_is_imported(
    actions: Actions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fcntl.py").write_text("raise SystemExit(9)")
    (tmp_path / "click.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-c", "import click, fcntl; print(click.__file__)"]
    monkeypatch.setattr(actions, "_command_line", lambda _: command)
    action_id = actions.begin(offer())
    ended = when_ended(actions, action_id)
    assert ended.progress is ActionProgress.SHOWN, ended.look
    assert str(tmp_path) not in ended.look


def test_a_command_that_cannot_be_started_leaves_nothing_begun(
    actions: Actions, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(actions_module.subprocess, "Popen", refuse)
        for call in (lambda: actions.change(action_id), lambda: actions.begin(offer())):
            with pytest.raises(HeadroomError, match=r"The command: could not be started .*unavailable"):
                call()
    assert len(actions.all()) == 1
    actions.change(action_id)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE


def test_moves_that_were_carried_out_are_kept_with_their_way_back(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions_module, "_MOST_KEPT", 2)
    program.makes()
    action_id = actions.begin(offer(MOVE))
    when_ended(actions, action_id)
    actions.change(action_id)
    when_ended(actions, action_id)
    looked_at = actions.begin(offer(MOVE))
    when_ended(actions, looked_at)
    clock.ms += 3_600_000
    folders = store.path / "_actions"
    assert (folders / looked_at / "result.json").exists()
    for _ in range(4):
        clock.ms += 1
        when_ended(actions, actions.begin(offer()))
    assert (folders / action_id / "result.json").exists()
    assert not (folders / looked_at).exists()


def test_what_was_made_for_nothing_is_removed_once_it_cannot_be_carried_out(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock
) -> None:
    program.makes()
    action_id = actions.begin(offer(MOVE))
    when_ended(actions, action_id)
    clock.ms += 3_600_000
    when_ended(actions, actions.begin(offer()))
    assert not (store.path / "_actions" / action_id / "result.json").exists()
    assert actions.read(action_id).progress is ActionProgress.OUTDATED


def test_a_form_that_says_nothing_is_not_sent_to_the_command(client: Client, program: Program) -> None:
    answer = client.post("/new/move", json={"cluster": CLUSTER, "values": {"topics": "a"}}, headers=ORIGIN)
    assert answer.status_code == 422
    assert "says nothing of what is wanted. Fill in one of: drain brokers, replace brokers" in answer.json()["error"]
    assert program.calls() == []


@pytest.mark.parametrize("eta_s", [1e9, 1e12, 1e300, -5.0])
def test_no_eta_ends_the_page(store: DashboardStore, eta_s: float) -> None:
    for tick_ms, seconds in ((TICK_MS - 10_000, 60.0), (TICK_MS, eta_s)):
        store.throttles(status(1, Role.LEADER, 12, 10), tick_ms=tick_ms)
        store.replicas(new_replica(eta_s=seconds), tick_ms=tick_ms)
    for path in ("/timeline", "/moves", "/throttles?broker=1"):
        answer = store.client().get(path)
        assert answer.status_code == 200, path
        assert len(answer.text) < 100_000, path
