"""Commands that the page carries out: which ones, who may ask, how often, and what remains when a process dies."""

from __future__ import annotations

import base64
import json
import os
import shlex
import signal
import threading
from pathlib import Path
from typing import Any

import click
import psutil
import pytest

from headroom.cli.main import headroom
from headroom.dashboard.acting import actions as actions_module
from headroom.dashboard.acting import allowed as allowed_module
from headroom.dashboard.acting.actions import LOOK_IS_GOOD_MS, ActionProgress, Actions
from headroom.dashboard.acting.allowed import AllowedCommand, allowed_command
from headroom.dashboard.acting.offers import Offers
from headroom.dashboard.app import create_app
from headroom.dashboard.site import Site
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.acting import (
    CONFIG,
    ORIGIN,
    RAISE,
    TOKEN,
    Clock,
    Program,
    acting,
    buttons,
    offer,
    until,
    when_ended,
)
from tests.unit.builders.dashboard_store import HOSTS, TICK_MS, Client, DashboardStore, event
from tests.unit.dashboard.markup import Markup

# Which commands

# Most commands make nothing in it.
FOLDER = Path("/nosuch")


@pytest.mark.parametrize(
    "text",
    [
        RAISE,
        "headroom throttle clear --config orders.toml --execute",
        "headroom elections --config orders.toml --execute",
        "headroom reassign cancel --all --config orders.toml --execute",
        "headroom reassign clean 3f9a01c2 --config orders.toml --execute",
        "headroom reassign rollback 3f9a01c2 --throttle 50000000 --config orders.toml --execute",
        "headroom migration run orders u --name m --method routed --config orders.toml --execute",
        "headroom migration run orders u --name m --method routed --unless-running --config orders.toml --execute",
        "headroom migration shield --name m --config orders.toml --execute",
        "headroom migration shield --name m --off --config orders.toml --execute",
        "headroom migration cancel --name m --config orders.toml --execute",
    ],
)
def test_a_change_is_looked_at_without_execute_and_made_with_it(text: str) -> None:
    command = allowed_command(text, CONFIG)
    assert command is not None
    look, change = command.look(FOLDER), command.change(FOLDER)
    assert change is not None
    assert "--execute" not in look
    assert set(change) - set(look) <= {"--execute", "--yes"}
    assert sorted(shlex.split(command.text)) == sorted(shlex.split(text))
    # What is shown as the same command is read as the same command.
    assert allowed_command(command.text, CONFIG) == command


def test_a_command_that_asks_gets_its_answer() -> None:
    assert offer("headroom elections --config orders.toml --execute").command.change(FOLDER) == [
        *("elections", "--config", "orders.toml", "--execute", "--yes"),
    ]
    assert "--yes" not in (offer(RAISE).command.change(FOLDER) or ())


def test_an_acknowledgement_has_nothing_to_look_at() -> None:
    command = allowed_command("headroom alerts ack 'a b' --note 'it is mine' --config orders.toml", CONFIG)
    assert command is None
    command = allowed_command("headroom alerts ack ab12 --note 'it is mine' --config orders.toml", CONFIG)
    assert command is not None
    assert not command.looks_first
    assert command.change(FOLDER) == ["alerts", "ack", "ab12", "--note", "it is mine", "--config", "orders.toml"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "headroom",
        "headroom throttle apply --rate 1MB --config other.toml --execute",
        "headroom throttle apply --rate 1MB --config orders.toml",
        "headroom throttle apply --config orders.toml --execute --rate",
        "headroom throttle apply --config orders.toml --execute --rate --brokers",
        "headroom throttle apply --rate=1MB --config orders.toml --execute",
        "headroom throttle apply --rate 1MB --config orders.toml --execute /etc/passwd",
        "headroom throttle apply --rate 1MB --config orders.toml --execute --with-parent",
        "headroom throttle clear --force --config orders.toml --execute",
        "headroom reassign clean ../x --config orders.toml --execute",
        "headroom reassign clean --force --config orders.toml --execute",
        "headroom reassign run plan.json --config orders.toml --execute",
        "headroom reassign cancel plan.json --config orders.toml --execute",
        "headroom balance run --dir x --config orders.toml --execute",
        "headroom maintain --repair --config orders.toml --execute",
        "headroom alerts ack ab12 --config orders.toml --execute",
        "headroom watch --config orders.toml --execute",
        "kafka-configs.sh --alter",
        "sh -c 'headroom throttle apply'",
        "headroom throttle apply --rate 'unclosed --config orders.toml --execute",
        f"headroom throttle apply --rate {'9' * 5000} --config orders.toml --execute",
        "headroom reassign rollback --config orders.toml --execute",
        "headroom elections --topics '' --config orders.toml --execute",
        "headroom elections --execute --config",
        "headroom alerts silence --for 365d --note n --config orders.toml",
        "headroom alerts ack ab12 --note 'a\0b' --config orders.toml",
        "headroom alerts ack ab12 --note 'a\ud800b' --config orders.toml",
        "headroom alerts ack ab12 --note 'a\u202eb' --config orders.toml",
        "headroom migration run orders --name m --method routed --until aged --drop --config orders.toml --execute",
        "headroom migration run orders --name m --method routed --accept-loss --config orders.toml --execute",
        "headroom migration run --name m --method routed --config orders.toml --execute",
        "headroom migration run orders --method routed --config orders.toml --execute",
        "headroom migration cancel --config orders.toml --execute",
        RAISE + "; rm -rf /",
        RAISE + " && echo",
        RAISE + " | tee x",
    ],
)
def test_no_other_command_is_carried_out(text: str) -> None:
    assert allowed_command(text, CONFIG) is None


def test_nothing_of_a_command_reaches_a_shell(actions: Actions, program: Program) -> None:
    text = (
        "headroom alerts silence --cluster prod --kind k --subject '$(touch x); `y` \"' --for 1h --note n "
        "--config orders.toml"
    )
    action_id = actions.begin(offer(text))
    actions.change(action_id)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE
    assert program.calls() == [
        'alerts silence --cluster prod --kind k --subject $(touch x); `y` " --for 1h --note n --config orders.toml',
    ]


def test_every_allowed_option_is_one_of_the_command() -> None:
    for words, rule in allowed_module.ALLOWED.items():
        command: Any = headroom
        for word in words:
            command = command.get_command(click.Context(command), word)
        options = {name: one for one in command.params for name in one.opts if name.startswith("--")}
        for name, has_value in rule.options.items():
            assert name in options, (words, name)
            assert options[name].is_flag is not has_value, (words, name)
        if rule.making is not None:
            assert set(rule.making.options) <= set(options), words
            assert "--execute" not in options
            continue
        assert rule.asks is ("--yes" in options), words
        assert rule.looks_first is ("--execute" in options), words


def test_a_command_without_settings_file_is_carried_out_with_that_of_the_cluster() -> None:
    assert offer("headroom elections --execute").command.look(FOLDER) == ["elections", "--config", CONFIG]


# Offers


def test_an_offer_is_read_back_for_ten_minutes_and_no_longer_than_twenty(clock: Clock) -> None:
    offers = Offers(clock)
    signed = offers.sign(offer())
    assert offers.read(signed) == offer()
    clock.ms += 600_000
    assert offers.read(signed) == offer()
    clock.ms += 600_000
    assert offers.read(signed) is None


def test_an_offer_does_not_change_with_each_tick(clock: Clock) -> None:
    offers = Offers(clock)
    signed = offers.sign(offer())
    clock.ms += 1000
    assert offers.sign(offer()) == signed


def test_no_offer_but_a_signed_one_is_read(clock: Clock) -> None:
    offers = Offers(clock)
    signed, other = offers.sign(offer()), offers.sign(offer("headroom elections --config orders.toml --execute"))
    body, signature = signed.split(".")
    forged = [
        "",
        ".",
        body,
        f"{body}.",
        f".{signature}",
        f"{body}.{'0' * 64}",
        f"{other.split('.')[0]}.{signature}",
        f"{signed}.x",
        signed.upper(),
        f" {signed}",
        signed + "ü",
        "bnVsbA==." + signature,
        "A" * 20_000,
        Offers(clock).sign(offer()),
    ]
    assert [offers.read(one) for one in forged] == [None] * len(forged)


# From the look to the end


def test_looking_changes_nothing_and_then_it_is_carried_out_once(actions: Actions, program: Program) -> None:
    action_id = actions.begin(offer())
    shown = when_ended(actions, action_id)
    assert (shown.progress, shown.exit_code) == (ActionProgress.SHOWN, 0)
    assert "end" in shown.look
    assert program.calls() == ["throttle apply --rate 9600000 --brokers 1,2 --raise-only --config orders.toml"]
    actions.change(action_id)
    done = when_ended(actions, action_id)
    assert (done.progress, done.exit_code, "end" in done.output) == (ActionProgress.DONE, 0, True)
    assert program.calls()[1:] == [f"{program.calls()[0]} --execute"]
    with pytest.raises(HeadroomError, match="does not wait to be carried out"):
        actions.change(action_id)
    assert len(program.calls()) == 2


def test_what_cannot_be_looked_at_is_not_carried_out(actions: Actions, program: Program) -> None:
    program.ends_with(1)
    action_id = actions.begin(offer())
    assert when_ended(actions, action_id).progress is ActionProgress.NOT_POSSIBLE
    with pytest.raises(HeadroomError, match="not possible"):
        actions.change(action_id)


def test_a_change_that_fails_says_so(actions: Actions, program: Program) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    program.ends_with(4)
    actions.change(action_id)
    failed = when_ended(actions, action_id)
    assert (failed.progress, failed.exit_code) == (ActionProgress.FAILED, 4)


def test_what_was_shown_long_ago_is_not_carried_out(actions: Actions, clock: Clock) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    for passed_ms in (LOOK_IS_GOOD_MS, -1):
        clock.ms = TICK_MS + passed_ms
        assert actions.read(action_id).progress is ActionProgress.OUTDATED
        with pytest.raises(HeadroomError, match="outdated"):
            actions.change(action_id)


def test_twenty_clicks_at_once_are_one_change(actions: Actions, program: Program) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    program.waits()
    refused: list[HeadroomError] = []

    def click() -> None:
        try:
            actions.change(action_id)
        except HeadroomError as error:
            refused.append(error)

    threads = [threading.Thread(target=click) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    program.waits(False)
    assert len(refused) == 19
    when_ended(actions, action_id)
    assert len(program.calls()) == 2


def test_two_servers_of_a_store_carry_it_out_once(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock
) -> None:
    other = Actions(str(store.path), program.command_line, clock)
    action_id = actions.begin(offer())
    when_ended(other, action_id)
    # Both have read that it waits.
    program.waits()
    actions.change(action_id)
    with pytest.raises(HeadroomError, match=r"does not wait to be carried out|is being carried out already"):
        other.change(action_id)
    program.waits(False)
    assert when_ended(other, action_id).progress is ActionProgress.DONE


def test_the_same_command_is_not_carried_out_twice_at_a_time(actions: Actions, program: Program) -> None:
    first, second = actions.begin(offer()), actions.begin(offer())
    when_ended(actions, first)
    when_ended(actions, second)
    program.waits()
    actions.change(first)
    with pytest.raises(HeadroomError, match=f"is being carried out already.*{first}"):
        actions.change(second)
    program.waits(False)
    when_ended(actions, first)
    actions.change(second)
    assert when_ended(actions, second).progress is ActionProgress.DONE


def test_a_server_that_was_started_again_sees_what_goes_on(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock
) -> None:
    action_id = changing(actions, program)
    again = Actions(str(store.path), program.command_line, clock)
    assert again.read(action_id).progress is ActionProgress.CHANGING
    assert [one.action_id for one in again.all()] == [action_id]
    program.waits(False)
    assert when_ended(again, action_id).progress is ActionProgress.DONE


def changing(actions: Actions, program: Program) -> str:
    """Return an action that is being carried out, and goes on."""
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    program.waits()
    actions.change(action_id)
    return action_id


def process_of(store: DashboardStore, action_id: str) -> psutil.Process:
    file = store.path / "_actions" / action_id / "change" / "process.json"
    until(file.exists)
    return psutil.Process(json.loads(file.read_text())["pid"])


def test_a_command_outlives_its_worker_and_then_says_that_its_end_is_not_known(
    store: DashboardStore, actions: Actions, program: Program
) -> None:
    action_id = changing(actions, program)
    command = process_of(store, action_id)
    worker = command.parent()
    assert worker is not None
    worker.kill()
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    assert actions.read(action_id).progress is ActionProgress.CHANGING
    program.waits(False)
    assert when_ended(actions, action_id).progress is ActionProgress.LOST


def test_a_command_that_is_killed_is_a_failure(store: DashboardStore, actions: Actions, program: Program) -> None:
    action_id = changing(actions, program)
    process_of(store, action_id).kill()
    failed = when_ended(actions, action_id)
    assert (failed.progress, failed.exit_code) == (ActionProgress.FAILED, -signal.SIGKILL)


def test_stopping_asks_as_ctrl_c_does(store: DashboardStore, actions: Actions, program: Program) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    with pytest.raises(HeadroomError, match="is not being carried out"):
        actions.stop(action_id)
    program.waits()
    actions.change(action_id)
    until(lambda: "one" in actions.read(action_id).output)
    actions.stop(action_id)
    assert when_ended(actions, action_id).exit_code == 3


def test_a_command_is_stopped_whose_process_is_not_written_yet(
    store: DashboardStore, actions: Actions, program: Program
) -> None:
    action_id = changing(actions, program)
    process = store.path / "_actions" / action_id / "change" / "process.json"
    # Before that it does not take Ctrl-C as a program does that has begun.
    until(lambda: process.exists() and "one" in actions.read(action_id).output)
    aside = process.rename(process.with_name("aside"))
    later = threading.Timer(0.3, aside.rename, [process])
    later.start()
    actions.stop(action_id)
    later.join()
    assert when_ended(actions, action_id).exit_code == 3


def test_a_worker_that_never_began_is_lost(store: DashboardStore, actions: Actions, clock: Clock) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    folder = store.path / "_actions" / action_id / "change"
    folder.mkdir()
    (folder / "began.json").write_text(json.dumps({"began_ms": clock.ms}))
    assert actions.read(action_id).progress is ActionProgress.LOST


def test_only_some_run_at_once(actions: Actions, program: Program) -> None:
    begun = []
    for n in range(1, 6):
        begun.append(actions.begin(offer(RAISE.replace("9600000", f"{n}0000000"))))
        when_ended(actions, begun[-1])
    program.waits()
    for one in begun[:4]:
        actions.change(one)
    for call in (lambda: actions.change(begun[4]), lambda: actions.begin(offer())):
        with pytest.raises(HeadroomError, match="4 actions: are running already"):
            call()
    program.waits(False)
    for one in begun[:4]:
        when_ended(actions, one)


def test_what_is_urgent_does_not_wait_for_what_lasts(actions: Actions, program: Program) -> None:
    run = "headroom migration run orders --name m{} --method routed --config orders.toml --execute"
    rollback = "headroom reassign rollback r{} --throttle 50000000 --config orders.toml --execute"
    begun = []
    for text in (run.format(1), run.format(2), rollback.format(3), rollback.format(4), run.format(5)):
        begun.append(actions.begin(offer(text)))
        when_ended(actions, begun[-1])
    program.waits()
    for one in begun[:4]:
        actions.change(one)
    with pytest.raises(HeadroomError, match="4 moves and migrations: are running already"):
        actions.change(begun[4])
    urgent = actions.begin(offer())
    when_ended(actions, urgent)
    actions.change(urgent)
    assert actions.read(urgent).progress is ActionProgress.CHANGING
    program.waits(False)
    for one in (*begun[:4], urgent):
        when_ended(actions, one)


def test_old_actions_are_forgotten_but_none_that_runs(
    actions: Actions, program: Program, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions_module, "_MOST_KEPT", 2)
    first = actions.begin(offer())
    when_ended(actions, first)
    program.waits()
    actions.change(first)
    for _ in range(3):
        clock.ms += 1
        when_ended(actions, actions.begin(offer()))
    program.waits(False)
    when_ended(actions, first)
    kept = [one.action_id for one in actions.all()]
    assert first in kept
    assert len(kept) == 3


@pytest.mark.parametrize("action_id", ["", "..", "../x", "a/b", "nosuch", "a\0b", "%2e%2e"])
def test_an_id_is_no_path(actions: Actions, action_id: str) -> None:
    with pytest.raises(LookupError):
        actions.read(action_id)


def test_a_long_output_is_shown_from_its_end(store: DashboardStore, actions: Actions) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    (store.path / "_actions" / action_id / "look" / "output.txt").write_bytes(b"\xff" + b"x" * 100_000 + b"\nlast")
    look = actions.read(action_id).look
    assert look.startswith("… 36,006 bytes before it are left out\n")
    assert look.endswith("\nlast")


def test_a_folder_that_cannot_be_written_is_said(store: DashboardStore, program: Program, clock: Clock) -> None:
    store.path.mkdir()
    (store.path / "_actions").write_text("")
    with pytest.raises(HeadroomError, match=r"_actions: cannot be written .*\. Make room"):
        Actions(str(store.path), program.command_line, clock).begin(offer())


def test_a_planted_or_damaged_action_is_none(store: DashboardStore, actions: Actions) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    file = store.path / "_actions" / action_id / "action.json"
    record = json.loads(file.read_text())
    changes: list[Any] = [
        {"words": ["reassign", "clean", "--force", "/etc/x"]},
        {"words": ["watch"]},
        {"words": [1]},
        {"words": 5},
        {"made_ms": "x"},
        {"config": 3},
    ]
    for change in changes:
        file.write_text(json.dumps({**record, **change}))
        with pytest.raises(LookupError):
            actions.read(action_id)
        assert actions.all() == []
    for text in ("[]", "", "x", "[" * 100_000):
        file.write_text(text)
        assert actions.all() == []
    file.write_text(json.dumps(record))
    for name in ("result.json", "process.json", "began.json"):
        for text in ("[]", "{}", '{"exit_code": "x"}', '"x"'):
            (store.path / "_actions" / action_id / "look" / name).write_text(text)
            assert len(actions.all()) == 1


def test_a_folder_that_others_can_write_is_not_read(store: DashboardStore, actions: Actions) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    (store.path / "_actions").chmod(0o777)
    assert actions.all() == []
    with pytest.raises(LookupError):
        actions.change(action_id)
    with pytest.raises(HeadroomError, match="others can write there"):
        actions.begin(offer())


def test_a_clock_that_is_set_makes_no_running_change_lost(
    actions: Actions, program: Program, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    action_id = changing(actions, program)
    until(lambda: "one" in actions.read(action_id).output)
    for passed_ms in (3_600_000, -3_600_000):
        clock.ms = TICK_MS + passed_ms
        assert actions.read(action_id).progress is ActionProgress.CHANGING
    program.waits(False)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE


def test_a_command_whose_process_cannot_be_noted_goes_on_and_is_seen(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock
) -> None:
    action_id = changing(actions, program)
    (store.path / "_actions" / action_id / "change" / "process.json").unlink(missing_ok=True)
    until(lambda: "one" in actions.read(action_id).output)
    clock.ms += 60_000
    assert actions.read(action_id).progress is ActionProgress.CHANGING
    program.waits(False)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE


def test_a_command_that_cannot_be_started_says_so(store: DashboardStore, clock: Clock) -> None:
    store.path.mkdir()
    actions = Actions(str(store.path), lambda _: ["/nosuch/program"], clock)
    action_id = actions.begin(offer())
    ended = when_ended(actions, action_id)
    assert (ended.progress, ended.exit_code) == (ActionProgress.NOT_POSSIBLE, 127)
    assert "It was not started: FileNotFoundError" in ended.look


def test_a_clock_that_was_set_back_forgets_no_new_action(
    actions: Actions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions_module, "_MOST_KEPT", 2)
    for _ in range(2):
        when_ended(actions, actions.begin(offer()))
    clock.ms -= 3_600_000
    action_id = actions.begin(offer())
    assert when_ended(actions, action_id).action_id == action_id


# Who may ask


def test_a_command_is_carried_out_with_three_clicks(client: Client, program: Program) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    chosen = client.post("/actions", json={"offer": offered}, headers=ORIGIN)
    assert chosen.status_code == 201
    url = chosen.json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    page = client.get(url)
    assert "Nothing is changed yet." in page.text
    assert "throttle apply --rate 9600000 --brokers 1,2 --raise-only --config orders.toml --execute" in page.text
    # What a command prints enters as text, without what moves a terminal's cursor.
    assert "&lt;b&gt;one&lt;/b&gt;" in page.text
    assert "\x1b" not in page.text
    (change,) = buttons(page, "data-post")
    assert change == f"{url}/change"
    assert client.post(change, json={}, headers=ORIGIN).status_code == 202
    until(lambda: "Done." in client.get(url).text)
    assert len(program.calls()) == 2
    again = client.post(change, json={}, headers=ORIGIN)
    assert again.status_code == 409
    assert "does not wait to be carried out (done)" in again.json()["error"]
    assert len(program.calls()) == 2
    assert url in client.get("/runs").text


def test_alerts_are_acknowledged_and_silenced(client: Client, program: Program) -> None:
    offered = buttons(client.get("/alerts"), "data-run")
    # The first ones are its recommendation, in the headline too.
    assert len(offered) == 4
    for one in offered[2:]:
        url = client.post("/actions", json={"offer": one}, headers=ORIGIN).json()["url"]
        (change,) = buttons(client.get(url), "data-post")
        client.post(change, json={}, headers=ORIGIN)
        until(lambda url=url: "Done." in client.get(url).text)  # type: ignore[misc]
    assert [call.split()[:2] for call in program.calls()] == [["alerts", "ack"], ["alerts", "silence"]]


def test_a_past_moment_offers_nothing(client: Client) -> None:
    assert buttons(client.get(f"/alerts?at={TICK_MS}"), "data-run") == []


def test_a_rate_of_a_watch_that_has_ended_is_not_set(client: Client, clock: Clock) -> None:
    assert len(buttons(client.get("/alerts"), "data-run")) == 4
    clock.ms += 3_600_000
    # Acknowledging and silencing need no present rate.
    assert len(buttons(client.get("/alerts"), "data-run")) == 2


def test_a_rate_that_was_chosen_at_an_earlier_tick_is_not_looked_at_again(client: Client, clock: Clock) -> None:
    raised, acknowledged = (buttons(client.get("/alerts"), "data-run")[n] for n in (0, 2))
    for offered, again in ((raised, 0), (acknowledged, 1)):
        url = client.post("/actions", json={"offer": offered}, headers=ORIGIN).json()["url"]
        until(lambda url=url: bool(buttons(client.get(url), "data-post")))  # type: ignore[misc]
        clock.ms += LOOK_IS_GOOD_MS
        page = client.get(url)
        assert "shown too long ago" in page.text
        assert len(buttons(page, "data-run")) == again
        assert ("/throttles?cluster=prod" in page.text) is (again == 0)
        clock.ms -= LOOK_IS_GOOD_MS


def test_a_cluster_without_settings_offers_nothing(client: Client, store: DashboardStore) -> None:
    assert buttons(client.get("/alerts?cluster=other"), "data-run") == []


def test_without_a_token_nothing_is_offered_and_nothing_is_accepted(store: DashboardStore, program: Program) -> None:
    store.alerts(event("a", recommendation=json.dumps({"commands": [RAISE]})))
    client = store.client()
    assert "throttle apply" in client.get("/alerts").text
    assert buttons(client.get("/alerts"), "data-run") == []
    for path in ("/actions", "/actions/x/change", "/actions/x/stop"):
        assert client.post(path, json={"offer": "x"}, headers=ORIGIN).status_code in (404, 405)


FOREIGN: list[dict[str, str]] = [
    {},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://attacker.example"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://127.0.0.1"},
    {"origin": "http://localhost:8600"},
    {"origin": "http://127.0.0.1:8600.attacker.example"},
    {"origin": "http://attacker.example/127.0.0.1:8600"},
    {"origin": "http://[::1"},
    {"origin": "http://127.0.0.1:8600@attacker.example"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_request_of_another_origin_changes_nothing(client: Client, program: Program, headers: dict[str, str]) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    url = client.post("/actions", json={"offer": offered}, headers=ORIGIN).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    calls = program.calls()
    for path, content in (("/actions", {"offer": offered}), (f"{url}/change", {}), (f"{url}/stop", {})):
        answer = client.post(path, json=content, headers=headers)
        assert answer.status_code == 403
        assert "comes from another page" in answer.json()["error"]
    assert program.calls() == calls
    assert "Nothing is changed yet." in client.get(url).text


def test_a_request_without_a_session_changes_nothing(
    store: DashboardStore, client: Client, program: Program, clock: Clock
) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    stranger = Client(client.app)
    for headers in (ORIGIN, {**ORIGIN, "cookie": "headroom_session=x"}, {**ORIGIN, "authorization": "Bearer x"}):
        answer = stranger.post("/actions", json={"offer": offered}, headers=headers)
        assert answer.status_code == 401
    assert program.calls() == []


def test_a_program_with_the_token_needs_no_origin(client: Client) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert Client(client.app).post("/actions", json={"offer": offered}, headers=headers).status_code == 201


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_no_other_method_changes_anything(client: Client, program: Program, method: str) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    url = client.post("/actions", json={"offer": offered}, headers=ORIGIN).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    calls = program.calls()
    for path in ("/actions", f"{url}/change", f"{url}/stop"):
        assert client.request(method, path, headers=ORIGIN).status_code in (404, 405)
    assert program.calls() == calls


@pytest.mark.parametrize(
    ("content", "type_"),
    [
        (b'offer="x"', "application/x-www-form-urlencoded"),
        (b'{"offer": "x"}', "text/plain"),
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b'{"offer": 1}', "application/json"),
        (b'{"offer": "x", "command": "y"}', "application/json"),
    ],
)
def test_a_body_that_is_none_of_the_pages_is_refused(client: Client, content: bytes, type_: str) -> None:
    answer = client.post("/actions", content=content, headers={**ORIGIN, "content-type": type_})
    assert answer.status_code == 422


def test_an_outdated_offer_says_to_load_the_page_again(client: Client, clock: Clock, program: Program) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    clock.ms += 2_000_000
    answer = client.post("/actions", json={"offer": offered}, headers=ORIGIN)
    assert (answer.status_code, "load the page again" in answer.json()["error"]) == (409, True)
    assert program.calls() == []


def test_a_page_of_another_cluster_does_not_carry_it_out(
    store: DashboardStore, client: Client, program: Program, clock: Clock
) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    url = client.post("/actions", json={"offer": offered}, headers=ORIGIN).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    actions = Actions(str(store.path), program.command_line, clock)
    other = Client(create_app(Site([store.watched("elsewhere")], clock, actions), HOSTS, TOKEN))
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for path in (f"{url}/change", f"{url}/stop"):
        assert other.post(path, json={}, headers=bearer).status_code == 404
    assert other.get(url, headers=bearer).status_code == 404
    assert len(program.calls()) == 1


def test_a_silence_of_another_cluster_is_not_offered(store: DashboardStore, program: Program, clock: Clock) -> None:
    silence = "headroom alerts silence --cluster other --kind k --subject s --for 1h --config orders.toml"
    store.alerts(event("a", recommendation=json.dumps({"commands": [silence]})))
    offered = buttons(acting(store, program, clock).get("/alerts"), "data-run")
    assert [one for one in offered if "other" in base64.urlsafe_b64decode(one.split(".")[0]).decode()] == []


@pytest.mark.parametrize(
    ("steps", "rollback"),
    [
        ([{"before": "1000000000", "after": "50000000"}], "--throttle 50000000"),
        # What was there before is restored in the end.
        (
            [
                {"before": "1000000000", "after": "50000000", "state": "done"},
                {"before": "50000000", "after": "1000000000", "state": "undone"},
            ],
            "--throttle 50000000",
        ),
        # It is raised meanwhile, and the run notes before that it sets it back.
        (
            [
                {"before": "1000000000", "after": "50000000"},
                {"before": "1000000000", "after": "50000000", "state": "done"},
                {"before": "50000000", "after": "70000000"},
                {"before": "70000000", "after": "70000000", "state": "done"},
                {"before": "70000000", "after": "1000000000"},
                {"before": "70000000", "after": "1000000000", "state": "undone"},
            ],
            "--throttle 70000000",
        ),
        ([{"after": "50000000"}, {"subject": "broker 1 as log_dirs", "after": "300000000"}], "--throttle 50000000"),
        ([{"step": "submit", "subject": "t-0", "after": "1,2"}], None),
    ],
)
def test_a_run_is_moved_back_at_the_rate_that_it_had_set(
    store: DashboardStore, client: Client, steps: list[dict[str, Any]], rollback: str | None
) -> None:
    store.journal(*steps)
    text = client.get("/runs?run=r1").text
    assert "headroom reassign clean r1" in text
    assert ("reassign rollback r1" in text) is (rollback is not None)
    assert rollback is None or f"reassign rollback r1 {rollback} " in text


def test_the_id_of_a_run_is_one_word_of_a_shell(store: DashboardStore, client: Client) -> None:
    store.journal({"run_id": "a b"})
    text = Markup(client.get("/runs?run=a+b").text)
    commands = [code.text for code in text.all("code") if "reassign" in code.text]
    assert commands
    assert all("a b" in shlex.split(one) for one in commands)


def test_an_action_that_there_is_not_is_said(client: Client) -> None:
    for path in ("/actions/nosuch", "/actions/nosuch/events"):
        assert client.get(path).status_code == 404
    assert client.post("/actions/nosuch/change", json={}, headers=ORIGIN).status_code == 404


def test_the_token_is_not_in_the_files_of_actions(client: Client, store: DashboardStore, program: Program) -> None:
    offered = buttons(client.get("/alerts"), "data-run")[0]
    url = client.post("/actions", json={"offer": offered}, headers=ORIGIN).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    texts = [path.read_text() for path in (store.path / "_actions").rglob("*") if path.is_file()]
    assert len(texts) >= 4
    assert not any(TOKEN in text for text in texts)
    assert os.stat(store.path / "_actions").st_mode & 0o077 == 0


def test_the_words_of_an_offer_survive_json() -> None:
    assert AllowedCommand(tuple(json.loads(json.dumps(["a", "ü"]))), None) == AllowedCommand(("a", "ü"), None)
