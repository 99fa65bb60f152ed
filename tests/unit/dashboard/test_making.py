"""Moves and proposals that are made on the page: their forms, and what carries them out."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click
import psutil
import pytest

from headroom.cli.main import headroom
from headroom.dashboard.acting.actions import ActionProgress, Actions
from headroom.dashboard.acting.allowed import ALLOWED, PLAN_FILE, AllowedCommand, allowed_command, is_allowed
from headroom.dashboard.acting.curve import curve_of, cut_at
from headroom.dashboard.acting.forms import FORMS, FormName
from headroom.dashboard.acting.offers import CommandOffer
from headroom.dashboard.app import create_app
from headroom.dashboard.form_pages import form_url
from headroom.dashboard.site import Site
from headroom.dashboard.views.chart import ChartLine, over_actions
from headroom.schemas.config import MigrationSettings, OriginSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from headroom.streaming.store.single_instance import JobProcess
from tests.unit.builders.acting import CONFIG, ORIGIN, TOKEN, Clock, Program, buttons, offer, until, when_ended
from tests.unit.builders.dashboard_store import CLUSTER, HOSTS, TICK_MS, Client, DashboardStore, new_replica
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

MOVE = "headroom plan --drain 3 --config orders.toml"
PROPOSAL = "headroom balance propose --prefix 3 --config orders.toml"


def made(text: str) -> AllowedCommand:
    command = allowed_command(text, CONFIG)
    assert command is not None
    return command


# Commands


@pytest.mark.parametrize(
    "text",
    [
        "headroom plan move.json --config orders.toml",
        "headroom plan --topics-file x --config orders.toml",
        "headroom plan --state x --config orders.toml",
        "headroom plan --save-plan x --config orders.toml",
        "headroom plan --plot x.svg --config orders.toml",
        "headroom plan --in-flight --config orders.toml",
        "headroom plan --drain 3 --config orders.toml --execute",
        "headroom plan --drain --config orders.toml",
        "headroom plan --drain 3 --config other.toml",
        "headroom balance propose --state x --config orders.toml",
        "headroom balance run x --config orders.toml --execute",
        "headroom balance propose --config orders.toml --execute",
        "headroom balance --config orders.toml",
    ],
)
def test_no_file_of_others_is_read_or_written(text: str) -> None:
    assert allowed_command(text, CONFIG) is None


def test_what_an_alert_says_to_make_is_made_in_the_folder_of_the_action(tmp_path: Path) -> None:
    command = made("headroom balance propose --until-in-band 3 --dir /etc --config orders.toml")
    assert command.words == ("balance", "propose", "--until-in-band", "3")
    assert command.look(tmp_path)[-2:] == ["--dir", str(tmp_path / "proposal")]
    assert "/etc" not in command.text


def test_a_plan_is_carried_out_by_the_command_that_it_names_and_only_as_it_was_made(tmp_path: Path) -> None:
    command = made(MOVE)
    files = ["--batches-dir", str(tmp_path / "batches"), "--save-result", str(tmp_path / "result.json")]
    assert command.look(tmp_path) == ["plan", "--drain", "3", "--config", CONFIG, *files]
    named = f"headroom reassign run --batches-dir {tmp_path}/batches --throttle 50000000 --config {CONFIG} --execute"
    (tmp_path / "result.json").write_text(json.dumps({"next_commands": [named], "fingerprint": "ab-cd"}))
    change = command.change(tmp_path)
    run = f"reassign run --batches-dir {tmp_path}/batches --throttle 50000000 --fingerprint ab-cd"
    assert change == [*run.split(), "--config", CONFIG, "--execute", "--yes"]
    assert command.change_text(tmp_path) == f"headroom {run} --config {CONFIG} --execute"


@pytest.mark.parametrize(
    "result",
    [
        None,
        "",
        "[]",
        "{}",
        '{"next_commands": [], "fingerprint": "f"}',
        '{"next_commands": ["headroom reassign run \'"], "fingerprint": "f"}',
        '{"next_commands": null}',
    ],
)
def test_a_plan_that_names_no_command_is_not_carried_out(tmp_path: Path, result: str | None) -> None:
    if result is not None:
        (tmp_path / "result.json").write_text(result)
    assert made(MOVE).change(tmp_path) is None
    assert made(MOVE).change_text(tmp_path) is None


def test_a_proposal_is_carried_out_if_it_has_a_batch(tmp_path: Path) -> None:
    command = made(PROPOSAL)
    assert command.change(tmp_path) is None
    (tmp_path / "proposal").mkdir()
    proposal = {"throttle_bytes_per_s": 50_000_000, "batches": [{"copied_replicas": 1}]}
    (tmp_path / "proposal" / "proposal.json").write_text(json.dumps({**proposal, "batches": []}))
    assert command.change(tmp_path) is None
    (tmp_path / "proposal" / "proposal.json").write_text(json.dumps(proposal))
    run = ["balance", "run", str(tmp_path / "proposal"), "--config", CONFIG, "--execute"]
    assert command.change(tmp_path) == [*run, "--yes"]
    assert command.change_text(tmp_path) == " ".join(["headroom", *run])


# Actions


def test_a_move_is_shown_with_its_price_and_then_carried_out(
    store: DashboardStore, actions: Actions, program: Program
) -> None:
    program.makes()
    action_id = actions.begin(offer(MOVE))
    shown = when_ended(actions, action_id)
    batches = store.path / "_actions" / action_id / "batches"
    assert shown.progress is ActionProgress.SHOWN
    run = f"reassign run --batches-dir {batches} --throttle 50000000 --fingerprint ab-cd --config {CONFIG} --execute"
    assert shown.change_text == f"headroom {run}"
    actions.change(action_id)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE
    assert program.calls()[1:] == [f"{run} --yes"]


@pytest.mark.parametrize("text", [MOVE, PROPOSAL])
def test_what_made_nothing_is_not_carried_out(actions: Actions, program: Program, text: str) -> None:
    action_id = actions.begin(offer(text))
    ended = when_ended(actions, action_id)
    assert (ended.progress, ended.change_text) == (ActionProgress.NOTHING, None)
    with pytest.raises(HeadroomError, match="nothing"):
        actions.change(action_id)
    assert len(program.calls()) == 1


def test_an_interrupted_move_goes_on_as_often_as_needed(
    store: DashboardStore, actions: Actions, program: Program
) -> None:
    program.makes()
    action_id = actions.begin(offer(MOVE))
    when_ended(actions, action_id)
    for attempt, name in enumerate(("change", "change-2", "change-3")):
        program.waits()
        actions.change(action_id)
        with pytest.raises(HeadroomError, match="does not wait"):
            actions.change(action_id)
        process = store.path / "_actions" / action_id / name / "process.json"
        until(process.exists)
        psutil.Process(json.loads(process.read_text())["pid"]).kill()
        failed = when_ended(actions, action_id)
        assert (failed.progress, failed.goes_on) == (ActionProgress.FAILED, True), attempt
    program.waits(False)
    actions.change(action_id)
    assert when_ended(actions, action_id).progress is ActionProgress.DONE
    assert not actions.read(action_id).goes_on
    with pytest.raises(HeadroomError, match="does not wait"):
        actions.change(action_id)
    assert len(set(program.calls()[1:])) == 1


def test_other_changes_do_not_go_on(actions: Actions, program: Program) -> None:
    action_id = actions.begin(offer())
    when_ended(actions, action_id)
    program.ends_with(1)
    actions.change(action_id)
    assert not when_ended(actions, action_id).goes_on
    with pytest.raises(HeadroomError, match="does not wait"):
        actions.change(action_id)


# Forms


@pytest.mark.parametrize("name", FormName)
def test_every_field_is_an_option_of_the_command_and_may_be_given(name: FormName) -> None:
    form = FORMS[name]
    command: Any = headroom
    for word in form.words:
        command = command.get_command(click.Context(command), word)
    options = {one: option for option in command.params for one in option.opts}
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    for field in (field for group in form.groups for field in group.fields):
        option = arguments[0] if field.is_argument else options[field.option]
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        assert sorted(choices) == sorted(field.choices)
        if field.is_argument:
            assert (option.metavar, option.nargs, field.is_list) == ("TOPIC...", -1, True)
            continue
        assert (option.is_flag, option.multiple) == (field.is_flag, field.is_list)
        assert ALLOWED[form.words].options[field.option] is not field.is_flag
    assert set(form.always) <= set(ALLOWED[form.words].options)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (FormName.MOVE, {"drain": "3"}),
        (FormName.MOVE, {"drain": "3", "throttle": "50MB", "reorder": "on"}),
        (FormName.MOVE, {"replace": "3:7", "window": "22:00-06:00 Europe/Berlin", "topics": "a,b", "batches": "auto"}),
        (FormName.BALANCE, {"prefix": "3", "elections_only": "on", "exclude": "payments,broker:3"}),
        (FormName.MIGRATION, {"topic": "orders,_u", "name": "a move", "method": "drained", "until": "started"}),
        (FormName.MIGRATION, {"topic": "orders", "name": "m", "method": "routed", "router": "shop 1,billing-1"}),
    ],
)
def test_a_form_can_be_changed_from_what_it_has_made(name: FormName, values: dict[str, str]) -> None:
    empty = {field.name: " " for group in FORMS[name].groups for field in group.fields}
    command = FORMS[name].command({**empty, **values}, CONFIG)
    assert command.words[: len(FORMS[name].words)] == FORMS[name].words
    url = form_url(CLUSTER, command, "a1")
    assert url is not None
    parts = urlsplit(url)
    assert (parts.path, dict(parse_qsl(parts.query))) == (f"/new/{name.value}", {"cluster": CLUSTER, **values})
    assert all(form.values(command) is None for other, form in FORMS.items() if other is not name)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"drain": "--execute"}, "Drain brokers: has a value that no option can have. Write ids"),
        ({"topics": "a\u202eb"}, "Topics: has a value"),
        ({"topics": "a" * 3000}, "Topics: has a value"),
        ({"config": "x"}, "config: is not a field of New move. There are: topics, drain"),
        ({"batches_dir": "x"}, "batches_dir: is not a field"),
        ({"topics": "a" * 1500, "drain": "1" * 1000}, "has a value that no option can have"),
    ],
)
def test_what_no_option_can_have_is_refused(values: dict[str, str], match: str) -> None:
    with pytest.raises(HeadroomError, match=match):
        FORMS[FormName.MOVE].command(values, CONFIG)


def test_a_migration_is_run_by_the_command_of_its_form_and_ends_no_other_run() -> None:
    values = {"topic": " orders, users ", "name": "m", "method": "routed", "router": "a, b", "until": "aged"}
    command = FORMS[FormName.MIGRATION].command(values, CONFIG)
    text = "headroom migration run orders users --name m --method routed --router a --router b --until aged"
    assert command.text == f"{text} --unless-running --config orders.toml --execute"
    assert is_allowed(command)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"name": "m", "method": "drained"}, "Topics: is not filled in. Write names of the origin"),
        ({"topic": "orders", "method": "drained"}, "Name: is not filled in. Write any name"),
        ({"topic": "orders", "name": "m", "method": " "}, "Method: is not filled in. Write how records"),
        ({"topic": "orders,,users", "name": "m", "method": "drained"}, "Topics: has a value that no option can have"),
        ({"topic": "orders,--drop", "name": "m", "method": "drained"}, "Topics: has a value that no option can have"),
        ({"topic": "--execute", "name": "m", "method": "drained"}, "Topics: has a value that no option can have"),
        # What the command may have is of the field of that name alone.
        ({"topic": "--until,aged,orders", "name": "m", "method": "drained"}, "Topics: has a value that no option can"),
        ({"topic": "orders,--unless-running", "name": "m", "method": "drained"}, "Topics: has a value that no option"),
        ({"topic": "orders", "name": "m", "method": "NaN"}, "Method: has a value that no option can have"),
        ({"topic": "orders", "name": "m", "method": "routed", "router": ",".join("r" * 10_000)}, "Routers .*: has a"),
        ({"topic": "../x", "name": "m", "method": "drained"}, "Topics: has a value that no option can have"),
        ({"topic": "orders", "name": "-m", "method": "drained"}, "Name: has a value that no option can have"),
        ({"topic": "orders", "name": "m", "method": "routed", "router": "a,--drop"}, "Routers .*: has a value that no"),
        ({"topic": "orders", "name": "m", "method": "drained", "drop": "on"}, "drop: is not a field of New migration"),
    ],
)
def test_a_migration_needs_topics_a_name_and_a_method_and_deletes_nothing(values: dict[str, str], match: str) -> None:
    with pytest.raises(HeadroomError, match=match):
        FORMS[FormName.MIGRATION].command(values, CONFIG)


# Pages


def sent(client: Client, name: str, values: dict[str, str], **headers: str) -> Any:
    return client.post(f"/new/{name}", json={"cluster": CLUSTER, "values": values}, headers=headers or ORIGIN)


def test_a_move_is_made_and_started_with_three_clicks(client: Client, program: Program) -> None:
    program.makes()
    links = [link.attributes["href"] for link in Markup(client.get("/moves").text).all("a")]
    assert f"/new/move?cluster={CLUSTER}" in links
    form = Markup(client.get(f"/new/move?cluster={CLUSTER}").text).all("form")[0]
    assert form.attributes["data-choose"] == "/new/move"
    answer = sent(client, "move", {"drain": "3", "throttle": "50MB"})
    assert answer.status_code == 201
    url = answer.json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    page = client.get(url).text
    assert "It is carried out by" in page
    assert "--throttle 50000000 --fingerprint ab-cd --config orders.toml --execute" in page
    # What is wanted can be changed, with what was given.
    assert "/new/move?cluster=prod&amp;drain=3&amp;throttle=50MB" in page
    (change,) = buttons(client.get(url), "data-post")
    assert client.post(change, json={}, headers=ORIGIN).status_code == 202
    until(lambda: "Done." in client.get(url).text)
    assert [call.split()[0] for call in program.calls()] == ["plan", "reassign"]


def test_a_migration_is_begun_where_an_origin_is_set(
    client: Client, store: DashboardStore, program: Program, clock: Clock
) -> None:
    url = f"/new/migration?cluster={CLUSTER}"
    assert url not in client.get("/migration").text.replace("&amp;", "&")
    origin = MigrationSettings(origin=OriginSettings(bootstrap_servers="old:9092"))
    watched = store.watched(CLUSTER)
    watched = replace(watched, settings=replace(watched.settings, migration=origin))
    site = Site([watched], clock, Actions(str(store.path), program.command_line, clock))
    client = Client(create_app(site, HOSTS, TOKEN))
    assert client.post("/login", json={"token": TOKEN}, headers=ORIGIN).status_code == 204
    assert [a.attributes["href"] for a in Markup(client.get("/migration").text).all("a") if "New" in a.text] == [url]
    form = Markup(client.get(url).text)
    assert form.texts("option") == ["drained", "routed", "mirrored", "linked", "migrated", "started", "aged"]
    filled = {"topic": "orders", "name": "move", "method": "drained", "router": "", "until": "migrated"}
    action = sent(client, "migration", filled).json()["url"]
    until(lambda: bool(buttons(client.get(action), "data-post")))
    text = "migration run orders --name move --method drained --until migrated --unless-running --config orders.toml"
    assert program.calls() == [text]
    page = client.get(action).text
    assert f"headroom {text} --execute" in page
    assert "/new/migration?cluster=prod&amp;topic=orders&amp;name=move&amp;method=drained&amp;until=migrated" in page
    program.waits()
    (change,) = buttons(client.get(action), "data-post")
    client.post(change, json={}, headers=ORIGIN)
    assert "Being carried out" in client.get("/migration").text
    program.waits(False)
    until(lambda: "Done." in client.get(action).text)
    assert program.calls()[1:] == [f"{text} --execute"]


def test_a_form_has_the_values_of_its_address_as_text(client: Client) -> None:
    page = client.get(f'/new/move?cluster={CLUSTER}&drain=3"><script>&reorder=on&nosuch=1').text
    inputs = {one.attributes.get("name"): one.attributes for one in Markup(page).all("input")}
    assert inputs["drain"]["value"] == '3"><script>'
    assert "checked" in inputs["reorder"]
    assert "checked" not in inputs["disable_rack_aware"]
    assert "nosuch" not in inputs


def test_a_value_that_no_option_can_have_is_said(client: Client, program: Program) -> None:
    answer = sent(client, "move", {"drain": "-1"})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("Drain brokers: has a value that no option can have")
    assert program.calls() == []


def test_a_form_of_another_origin_or_without_a_session_changes_nothing(client: Client, program: Program) -> None:
    assert sent(client, "move", {"drain": "3"}, origin="http://attacker.example").status_code == 403
    assert sent(Client(client.app), "move", {"drain": "3"}).status_code == 401
    assert program.calls() == []


@pytest.mark.parametrize("content", [{}, {"cluster": CLUSTER}, {"cluster": CLUSTER, "values": {"drain": 3}}, []])
def test_a_body_that_is_none_of_a_form_is_refused(client: Client, content: Any) -> None:
    assert client.post("/new/move", json=content, headers=ORIGIN).status_code == 422


def test_only_clusters_with_settings_and_the_present_have_forms(client: Client, store: DashboardStore) -> None:
    assert client.get("/new/move?cluster=other").status_code == 404
    assert client.post("/new/move", json={"cluster": "other", "values": {}}, headers=ORIGIN).status_code == 404
    assert client.get("/new/nosuch").status_code == 404
    for path in (f"/moves?at={TICK_MS}", "/moves?cluster=other"):
        assert "/new/move" not in client.get(path).text
    assert "/new/move" not in store.client().get("/moves").text
    assert store.client().get("/new/move").status_code == 404


def test_what_is_carried_out_now_is_above_the_moves(client: Client, program: Program) -> None:
    program.makes()
    program.waits()
    url = sent(client, "move", {"drain": "3"}).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    assert "Being carried out" not in client.get("/moves").text
    client.post(f"{url}/change", json={}, headers=ORIGIN)
    page = client.get("/moves").text
    assert "Being carried out" in page
    assert url in page
    assert "Being carried out" not in client.get(f"/moves?at={TICK_MS}").text
    program.waits(False)
    until(lambda: "Done." in client.get(url).text)
    assert "Being carried out" not in client.get("/moves").text


def test_a_move_in_flight_has_how_far_it_is_and_all_that_can_be_done_about_it(
    client: Client, store: DashboardStore, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of four brokers' throttles the highest requirement counts.
    store.throttles(status(1, Role.LEADER, 12, 10, partition()), status(3, Role.FOLLOWER, 14, 9, partition()))
    store.replicas(new_replica(0), new_replica(1, "in_sync"))
    program.makes()
    program.waits()
    url = sent(client, "move", {"drain": "3"}).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    assert "Stop after this batch" not in client.get("/moves").text
    client.post(f"{url}/change", json={}, headers=ORIGIN)
    until(lambda: "It says" in client.get("/moves").text)
    # The run has not begun its journal.
    assert "It has no run under way: it begins, or is about to end." in client.get("/moves").text
    assert "reassign cancel --all" in client.get("/moves").text
    (process,) = (store.path / url.replace("/actions/", "_actions/") / "change").glob("process.json")
    has_lock(monkeypatch, json.loads(process.read_text())["pid"])
    options = json.dumps({"batches": 3, "partitions": 40})
    run = {"run_id": "3f9a", "step": "run", "subject": "ab-cd", "after": options}
    done = {"run_id": "3f9a", "step": "finish", "state": "done", "after": "[1]"}
    rate = {"run_id": "3f9a", "after": "50000000"}
    store.journal(run, rate, done | {"subject": "t-1"}, done | {"subject": "t-2"}, done | {"subject": "t-2"})
    answer = client.get("/moves")
    page = Markup(answer.text)
    assert "reassign run 3f9a, begun at 2027-01-15 08:00:00 UTC by ops@host" in answer.text
    terms = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    # 25 of 200 MB are left.
    expected = {"Partitions done": "2 of 40", "Batches": "3 in all", "Copied of what moves now": "87.5 %"}
    assert expected.items() <= terms.items()
    # What it has printed last: its program notes the options of the run.
    assert terms["It says"].startswith("<b>one</b>\\x1b[31m reassign run --batches-dir")
    assert terms["Finish"] == "At the throttles in force the moves are done in 1 min."
    assert "It must exceed 10.00 MB/s; cluster.replication_capacity is not set." in answer.text
    assert [a.attributes["href"] for a in page.all("a") if a.text == "Another throttle…"] == [
        "/throttles?rate=14000000"
    ]
    assert buttons(answer, "data-post") == [f"{url}/stop"]
    offered = [text for text in page.texts("code") if text.startswith("headroom reassign")]
    assert offered == [
        "headroom reassign cancel --all --config orders.toml --execute",
        "headroom reassign clean 3f9a --config orders.toml --execute",
        "headroom reassign rollback 3f9a --throttle 50000000 --config orders.toml --execute",
    ]
    assert client.post(f"{url}/stop", json={}, headers=ORIGIN).status_code == 202
    assert "Stop after this batch" not in client.get("/moves").text


def has_lock(monkeypatch: pytest.MonkeyPatch, pid: int) -> None:
    """Let a process have the lock of the runs."""
    process = JobProcess(pid, "a-host", TICK_MS, "headroom reassign run move.json")
    monkeypatch.setattr("headroom.dashboard.views.moves.running_process", lambda *_: process)


def test_a_run_of_another_process_is_not_stopped_with_a_move_that_this_page_begins(
    client: Client, store: DashboardStore, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    store.journal({"step": "run", "subject": "ab-cd"})
    program.makes()
    program.waits()
    url = sent(client, "move", {"drain": "3"}).json()["url"]
    until(lambda: bool(buttons(client.get(url), "data-post")))
    client.post(f"{url}/change", json={}, headers=ORIGIN)
    until(lambda: "It says" in client.get("/moves").text)
    # An interrupted run, and then one of a terminal.
    for carried in ("No process of this machine carries it on", "Carried out by pid 1 on host a-host"):
        _, first, second = client.get("/moves").text.split('<article class="card ')
        assert "It has no run under way: it begins, or is about to end." in first
        assert f'data-post="{url}/stop"' in first
        assert "reassign run r1, begun at" in second
        assert carried in second
        assert "data-post" not in second.partition("</article>")[0]
        has_lock(monkeypatch, 1)


def test_a_partition_that_was_cancelled_is_not_done(client: Client, store: DashboardStore) -> None:
    ended = {"step": "finish", "before": "[2]", "after": "[1]"}
    store.journal(
        {"step": "run", "subject": "ab-cd", "after": '{"partitions": 3}'},
        ended | {"subject": "t-1", "state": "failed"},
        ended | {"subject": "t-2", "state": "done", "after": "[2]"},
    )
    assert "Partitions done</dt><dd>1 of 3</dd>" in client.get("/moves").text


def test_how_far_a_move_is_and_its_bounds_are_unknown_without_a_look_of_now(
    client: Client, store: DashboardStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    store.replicas(new_replica(0))
    has_lock(monkeypatch, 1)
    store.journal({"step": "run", "subject": "ab-cd"})

    def said() -> tuple[bool, bool]:
        text = client.get("/moves").text
        copied_unknown = "Copied of what moves now</dt><dd>unknown</dd></div>" in text.replace("\n", "")
        return copied_unknown, "What it must exceed is unknown;" in text

    assert said() == (False, False)
    # What was read before a run began is of another move.
    store.journal({"run_id": "r2", "step": "run", "subject": "ab-cd", "at_ms": TICK_MS + 1})
    assert said() == (True, False)
    clock.ms = TICK_MS + 3_600_000
    assert said() == (True, True)
    assert "/throttles?rate=" not in client.get("/moves").text


def test_what_moves_can_be_cancelled_beside_a_run_that_was_interrupted(client: Client, store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    store.journal({"step": "run", "subject": "ab-cd"})
    page = client.get("/moves").text
    assert "No process of this machine carries it on" in page
    assert "headroom reassign cancel --all --config orders.toml --execute" in page


def test_a_run_that_nothing_carries_on_is_said_to_be_interrupted(client: Client, store: DashboardStore) -> None:
    store.journal({"step": "run", "subject": "ab-cd", "after": "{"}, {"after": "1000000"})
    page = client.get("/moves")
    assert "No process of this machine carries it on: it was interrupted, or runs elsewhere." in page.text
    assert "Partitions done</dt><dd>0</dd>" in page.text
    assert "reassign clean r1" in page.text
    assert "Once it has stopped" not in page.text
    assert "carries it on" not in client.get(f"/moves?at={TICK_MS}").text
    store.journal({"seq": 9, "step": "run", "subject": "ab-cd", "state": "done"})
    assert "carries it on" not in client.get("/moves").text


# A plan that is given

PLAN = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}'


def given(text: str = PLAN, name: str = "plan") -> dict[str, str]:
    return {name: text}


@pytest.mark.parametrize("name", ["plan", "plan_file"])
def test_a_plan_that_is_given_is_priced_and_carried_out_by_the_same_commands(
    client: Client, program: Program, store: DashboardStore, name: str
) -> None:
    program.makes()
    links = [link.attributes["href"] for link in Markup(client.get("/moves").text).all("a")]
    assert f"/new/file?cluster={CLUSTER}" in links
    answer = sent(client, "file", {**given(name=name), "throttle": "50MB"})
    assert answer.status_code == 201
    url = answer.json()["url"]
    folder = store.path / url.replace("/actions/", "_actions/")
    assert (folder / PLAN_FILE).read_text() == PLAN
    until(lambda: bool(buttons(client.get(url), "data-post")))
    text = f"plan --throttle 50MB {folder / PLAN_FILE} --config orders.toml"
    files = f"--batches-dir {folder / 'batches'} --save-result {folder / 'result.json'}"
    assert program.calls() == [f"{text} {files}"]
    assert f"headroom {text}" in Markup(client.get(url).text).texts("code")
    (change,) = buttons(client.get(url), "data-post")
    assert client.post(change, json={}, headers=ORIGIN).status_code == 202
    until(lambda: "Done." in client.get(url).text)
    assert program.calls()[1].startswith(f"reassign run --batches-dir {folder / 'batches'} --throttle 50000000")


def test_what_is_wanted_of_a_plan_can_be_changed_with_the_plan(client: Client) -> None:
    hostile = PLAN.replace('"t"', '"</textarea><script>alert(1)</script>"')
    url = sent(client, "file", {**given(hostile), "throttle": "50MB"}).json()["url"]
    until(lambda: "What would be changed" in client.get(url).text)
    page = Markup(client.get(url).text)
    (form,) = [a.attributes["href"] for a in page.all("a") if a.text == "Change what is wanted"]
    assert form is not None
    # It is not looked at again without its plan.
    assert buttons(client.get(url), "data-run") == []
    again = Markup(client.get(form).text)
    (area,) = again.all("textarea")
    assert area.text == hostile
    assert [one.attributes["src"] for one in again.all("script")] == ["/static/page.js"]
    throttles = [one.attributes["value"] for one in again.all("input") if one.attributes["name"] == "throttle"]
    assert throttles == ["50MB"]
    labels = {one.attributes["for"] for one in again.all("label") if "for" in one.attributes}
    assert {"field-plan", "field-plan-file"} <= labels


@pytest.mark.parametrize("of", ["nosuch", "..", "../x", ""])
def test_a_form_has_no_plan_of_an_action_that_there_is_not(client: Client, of: str) -> None:
    (area,) = Markup(client.get(f"/new/file?cluster={CLUSTER}&of={of}").text).all("textarea")
    assert area.text == ""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "The plan: is not given"),
        ({"plan": " \n", "plan_file": ""}, "The plan: is not given"),
        ({"plan": PLAN, "plan_file": PLAN}, "The plan: is given twice"),
        ({"plan": "{"}, "The plan: is not valid JSON"),
        ({"plan": "[" * 50_000}, "The plan: is not valid JSON"),
        ({"plan": "[]"}, "The plan: is not a JSON object"),
        ({"plan": '{"version": 2, "partitions": []}'}, "The plan: has version 2"),
        ({"plan": '{"partitions": [{"topic": "<b>", "partition": -1, "replicas": [1]}]}'}, "The plan: "),
        ({"plan": "Current partition replica assignment\n{}"}, "not its proposal"),
        ({"plan": PLAN, "drain": "3"}, "drain: is not a field of Move from a file"),
        ({"plan": PLAN, "throttle": "--execute"}, "Throttle: has a value that no option can have"),
    ],
)
def test_what_is_no_plan_is_said_before_anything_is_begun(
    client: Client, program: Program, store: DashboardStore, values: dict[str, str], said: str
) -> None:
    answer = sent(client, "file", values)
    assert (answer.status_code, said in answer.json()["error"]) == (422, True), answer.json()
    assert program.calls() == []
    assert not (store.path / "_actions").exists()


TWICE = '{"partitions": [' + ", ".join(['{"topic": "\\ud800", "partition": 0, "replicas": [1]}'] * 2) + "]}"


@pytest.mark.parametrize(
    ("plan", "said"),
    [(TWICE, r"names \ud800-0 more than once"), ('{"version": "' + "x" * 1_000_000 + '"}', "has version 'xxx")],
    ids=["half of a pair", "long"],
)
def test_what_is_wrong_with_a_plan_is_said_in_some_words_whatever_it_has(client: Client, plan: str, said: str) -> None:
    answer = sent(client, "file", given(plan))
    assert answer.status_code == 422
    assert said in answer.json()["error"]
    assert len(answer.content) < 3000


@pytest.mark.parametrize("where", ["values", "beside them"])
def test_a_form_with_more_fields_than_any_has_is_one_error(client: Client, where: str) -> None:
    """Each would be an error of its own: 2 MB of them took 2 s, in which no other request was answered."""
    wrong = {f"a{n}": n for n in range(101)}
    form = {"cluster": CLUSTER, "values": wrong} if where == "values" else {"cluster": CLUSTER, "values": {}, **wrong}
    answer = client.post("/new/file", json=form, headers=ORIGIN)
    assert answer.status_code == 422
    assert "no form has more than 100 fields" in answer.json()["error"]


def test_a_form_of_a_plan_says_how_large_it_may_be(client: Client) -> None:
    (form,) = Markup(client.get(f"/new/file?cluster={CLUSTER}").text).all("form")
    assert form.attributes["data-most-bytes"] == "2000000"
    assert "at most 2 MB" in (form.attributes["data-too-large"] or "")


def test_the_output_of_kafkas_tool_is_a_plan(client: Client) -> None:
    text = f"Current partition replica assignment\n{PLAN}\n\nProposed partition reassignment configuration\n{PLAN}\n"
    assert sent(client, "file", given(text)).status_code == 201


def test_a_plan_has_at_most_2_mb_and_other_forms_64_kb(client: Client) -> None:
    entries = [{"topic": "orders", "partition": n, "replicas": [1, 2, 3]} for n in range(20_000)]
    assert sent(client, "file", given(json.dumps({"version": 1, "partitions": entries}))).status_code == 201
    for name, spaces, said in (("file", 2_000_000, "at most 2 MB"), ("move", 64_000, "at most 64 kB")):
        refused = sent(client, name, {"drain": "3", **given(PLAN + " " * spaces)})
        assert (refused.status_code, said in refused.json()["error"]) == (413, True)


def test_a_plan_of_nobody_is_not_read(client: Client) -> None:
    for headers in ({"origin": "http://attacker.example"}, {}):
        assert sent(Client(client.app), "file", given(" " * 1_000_000), **headers).status_code in (401, 403)


def test_the_same_options_with_another_plan_are_another_move(actions: Actions, program: Program) -> None:
    program.makes()
    command = allowed_command("headroom plan --throttle 50MB", CONFIG)
    assert command is not None
    begun = []
    for text in (PLAN, PLAN.replace("[1, 2]", "[2, 1]"), PLAN):
        digest = sha256(text.encode()).hexdigest()
        begun.append(actions.begin(CommandOffer(CLUSTER, replace(command, plan_digest=digest)), plan=text))
        when_ended(actions, begun[-1])
    program.waits()
    actions.change(begun[0])
    actions.change(begun[1])
    with pytest.raises(HeadroomError, match="is being carried out already"):
        actions.change(begun[2])
    program.waits(False)
    for one in begun[:2]:
        assert when_ended(actions, one).progress is ActionProgress.DONE


def test_only_a_plan_command_has_a_plan_and_none_is_named(tmp_path: Path) -> None:
    for text, may in ((MOVE, True), (PROPOSAL, False), ("headroom elections --config orders.toml --execute", False)):
        assert is_allowed(made(text))
        assert is_allowed(replace(made(text), plan_digest="d")) is may
    assert allowed_command(replace(made(MOVE), plan_digest="d").text, CONFIG) is None


def test_a_plan_is_removed_with_what_was_made_of_it(
    store: DashboardStore, actions: Actions, program: Program, clock: Clock
) -> None:
    action_id = actions.begin(CommandOffer(CLUSTER, replace(made(MOVE), plan_digest="d")), plan=PLAN)
    when_ended(actions, action_id)
    assert actions.plan_of(action_id) == PLAN
    clock.ms += 3_600_000
    when_ended(actions, actions.begin(offer()))
    assert actions.plan_of(action_id) == ""
    assert not (store.path / "_actions" / action_id / PLAN_FILE).exists()


# The curve of a proposal


def proposal_of(folder: Path, chosen: int = 3, actions: int = 4) -> None:
    """Write a proposal that removes 20, 40, ... of 100 that are outside, and copies 0, 1, 2, ... MB."""
    rows = [
        {
            "number": n,
            "kind": "move",
            "topic": "<b>t</b>",
            "partition": n,
            "from_broker": 1,
            "to_broker": 2,
            "outside_after": max(0.0, 100.0 - 20 * n),
            "copied_bytes_after": 1e6 * (n - 1),
        }
        for n in range(1, actions + 1)
    ]
    (folder / "proposal").mkdir()
    content = {"throttle_bytes_per_s": 50_000_000, "batches": [{"copied_replicas": 1}], "actions": rows}
    whole = {**content, "outside_before": 100.0, "chosen_actions": chosen}
    (folder / "proposal" / "proposal.json").write_text(json.dumps(whole))


def test_the_curve_has_what_the_first_actions_gain_and_copy(tmp_path: Path) -> None:
    proposal_of(tmp_path)
    curve = curve_of(tmp_path)
    assert curve is not None
    assert (curve.actions, curve.chosen) == (4, 3)
    # 3 MB are copied in all.
    assert [(row.number, row.gained, row.copied) for row in curve.rows] == [
        (1, "20 %", "0 B"),
        (2, "40 %", "1.0 MB"),
        (3, "60 %", "2.0 MB"),
        (4, "80 %", "3.0 MB"),
    ]
    assert (curve.gained, curve.copied) == ((0.0, 0.2, 0.4, 0.6, 0.8), (0.0, 0.0, 1 / 3, 2 / 3, 1.0))


def test_a_long_curve_is_thinned(tmp_path: Path) -> None:
    proposal_of(tmp_path, 12_345, 20_000)
    curve = curve_of(tmp_path)
    assert curve is not None
    assert (len(curve.rows), curve.actions) == (200, 20_000)
    picture = over_actions("A <title>", [ChartLine("a", curve.gained), ChartLine("b", curve.copied)], curve.chosen)
    assert len(picture) < 100_000
    page = Markup(picture)
    assert (page.elements[0].attributes["role"], page.elements[0].attributes["aria-label"]) == ("img", "A <title>")
    assert "annotation-chosen" in picture
    assert not page.all("script")
    assert not page.all("style")
    assert all("style" not in element.attributes for element in page.elements)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"actions": []}',
        '{"actions": [{}], "chosen_actions": 1}',
        '{"actions": [{}], "chosen_actions": Infinity}',
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_what_is_no_proposal_has_no_curve(tmp_path: Path, content: str) -> None:
    assert curve_of(tmp_path) is None
    (tmp_path / "proposal").mkdir()
    (tmp_path / "proposal" / "proposal.json").write_text(content)
    assert curve_of(tmp_path) is None


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("", ["--prefix", "2"]),
        ("--prefix 4", ["--prefix", "2"]),
        ("--goals disk --until-in-band 3 --throttle 5MB", ["--goals", "disk", "--throttle", "5MB", "--prefix", "2"]),
    ],
)
def test_a_cut_replaces_another_one(before: str, words: list[str]) -> None:
    cut = cut_at(made(f"headroom balance propose {before} --config orders.toml"), 2)
    assert cut == replace(cut, words=("balance", "propose", *words))
    assert is_allowed(cut)


def test_a_proposal_is_cut_at_an_action_by_its_button(client: Client, program: Program, store: DashboardStore) -> None:
    url = sent(client, "balance", {"throttle": "50MB"}).json()["url"]
    until(lambda: "nothing to carry out" in client.get(url).text)
    folder = store.path / url.replace("/actions/", "_actions/")
    (folder / "proposal").rmdir()
    proposal_of(folder)
    page = client.get(url)
    assert "The first 3 of 4 are chosen." in page.text
    assert "What the first of 4 actions gain and copy" in page.text
    assert "<b>t</b>-1" in Markup(page.text).texts("td")
    cuts = [one for one in Markup(page.text).all("button") if one.text.startswith("Only the first")]
    assert [one.text for one in cuts] == ["Only the first 1", "Only the first 2", "Only the first 4"]
    answer = client.post("/actions", json={"offer": cuts[1].attributes["data-run"]}, headers=ORIGIN)
    assert answer.status_code == 201
    until(lambda: len(program.calls()) == 2)
    assert program.calls()[1].startswith("balance propose --throttle 50MB --prefix 2 --config orders.toml --dir ")
