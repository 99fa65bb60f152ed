"""Moves and proposals that are made on the page: their forms, and what carries them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click
import psutil
import pytest

from headroom.cli.main import headroom
from headroom.dashboard.acting.actions import ActionProgress, Actions
from headroom.dashboard.acting.allowed import ALLOWED, AllowedCommand, allowed_command
from headroom.dashboard.acting.forms import FORMS, FormName
from headroom.dashboard.form_pages import form_url
from headroom.schemas.errors import HeadroomError
from tests.unit.builders.acting import CONFIG, ORIGIN, Program, buttons, offer, until, when_ended
from tests.unit.builders.dashboard_store import CLUSTER, TICK_MS, Client, DashboardStore
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
    for field in (field for group in form.groups for field in group.fields):
        assert options[field.option].is_flag is field.is_flag
        assert ALLOWED[form.words].options[field.option] is not field.is_flag


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (FormName.MOVE, {"drain": "3"}),
        (FormName.MOVE, {"drain": "3", "throttle": "50MB", "reorder": "on"}),
        (FormName.MOVE, {"replace": "3:7", "window": "22:00-06:00 Europe/Berlin", "topics": "a,b", "batches": "auto"}),
        (FormName.BALANCE, {"prefix": "3", "elections_only": "on", "exclude": "payments,broker:3"}),
    ],
)
def test_a_form_can_be_changed_from_what_it_has_made(name: FormName, values: dict[str, str]) -> None:
    command = FORMS[name].command({**values, "finish_within": " "}, CONFIG)
    assert command.words[: len(FORMS[name].words)] == FORMS[name].words
    url = form_url(CLUSTER, command)
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
