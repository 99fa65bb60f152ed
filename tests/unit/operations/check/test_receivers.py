"""The checks of receivers, against servers on this machine that speak their protocols."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from headroom.cli.main import headroom
from headroom.operations.check.receivers import receiver_checks
from headroom.operations.check.result import Check, CheckStatus
from headroom.operations.receivers import build_receivers
from headroom.schemas.config import AlertmanagerSettings, NotifySettings, SlackSettings, WebhookSettings
from tests.unit.fakes.receivers import FakeSlack, Said, Scripted, serving

_CHANNEL = "C0123456789"
_SECRET = "not-to-be-told"


def _check(notify: NotifySettings) -> Check:
    [row] = receiver_checks(build_receivers(notify))
    return row


def _slack(url: str) -> NotifySettings:
    return NotifySettings(slack=SlackSettings(token=_SECRET, channel=_CHANNEL, api_url=url))


def _webhook(url: str) -> NotifySettings:
    return NotifySettings(webhook=WebhookSettings(url=f"{url}/{_SECRET}", secret=_SECRET))


def _alertmanager(url: str) -> NotifySettings:
    return NotifySettings(alertmanager=AlertmanagerSettings(url, "me", _SECRET))


def _slack_webhook(url: str) -> NotifySettings:
    return NotifySettings(slack=SlackSettings(webhook_url=f"{url}/{_SECRET}"))


def test_slack_shows_its_bot_and_posts_nothing() -> None:
    slack = FakeSlack()
    with serving(slack) as url:
        row = _check(_slack(url))
    assert (row.answer, row.found) == (CheckStatus.OK, f"bot headroom of Orders, in channel {_CHANNEL}")
    assert slack.messages == {}
    assert slack.calls == ["auth.test", "conversations.history"]


@pytest.mark.parametrize(
    ("method", "code", "answer"),
    [
        ("auth.test", "invalid_auth", CheckStatus.FAILED),
        ("conversations.history", "channel_not_found", CheckStatus.FAILED),
        # With chat:write.public a bot writes to channels that it has not joined.
        ("conversations.history", "not_in_channel", CheckStatus.UNKNOWN),
        ("conversations.history", "missing_scope", CheckStatus.UNKNOWN),
    ],
)
def test_what_slack_refuses_is_named(method: str, code: str, answer: CheckStatus) -> None:
    slack = FakeSlack()
    slack.refused = {method: code}
    with serving(slack) as url:
        row = _check(_slack(url))
    assert row.name == "Receiver slack"
    assert row.answer is answer
    assert code in row.found
    assert row.remedy


def test_every_alertmanager_gets_an_empty_list() -> None:
    instances = Scripted(), Scripted()
    with serving(instances[0]) as first, serving(instances[1]) as second:
        row = _check(NotifySettings(alertmanager=AlertmanagerSettings(f"{first},{second}", "me", _SECRET)))
    assert (row.answer, row.found) == (CheckStatus.OK, "2 of 2 take alerts")
    for instance in instances:
        assert [asked.path for asked in instance.asked] == ["/api/v2/alerts"]
        assert instance.bodies() == [[]]


def test_an_alertmanager_that_does_not_answer_is_a_no_though_another_one_does() -> None:
    with serving(Scripted(Said(404))) as first, serving(Scripted()) as second:
        row = _check(_alertmanager(f"{first},{second}"))
    assert row.answer is CheckStatus.FAILED
    assert "answered 404" in row.found
    assert "[notify.alertmanager]" in row.remedy


@pytest.mark.parametrize("notify", [_webhook, _slack_webhook])
def test_a_webhook_is_asked_without_being_posted_to(notify: Callable[[str], NotifySettings]) -> None:
    # Many take nothing but posts.
    server = Scripted(Said(405))
    with serving(server) as url:
        row = _check(notify(url))
    assert row.answer is CheckStatus.UNKNOWN
    assert row.found == f"{url.removeprefix('http://')} answers; whether it takes events shows only the first one"
    assert [asked.method for asked in server.asked] == ["HEAD"]


@pytest.mark.parametrize("notify", [_slack, _webhook, _slack_webhook, _alertmanager])
@pytest.mark.parametrize("hears", [True, False])
def test_a_receiver_out_of_reach_is_a_no_without_its_secrets(
    notify: Callable[[str], NotifySettings], hears: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with serving(Scripted(*[Said(503, _SECRET.encode())] * 2), port if hears else 0):
        row = _check(notify(f"http://127.0.0.1:{port}"))
    assert row.answer is CheckStatus.FAILED
    assert ("503" if hears else "refused") in row.found
    assert _SECRET not in str(row)
    assert row.remedy


def test_a_secret_that_cannot_be_read_is_a_no_that_names_its_setting(tmp_path: Path) -> None:
    file = str(tmp_path / "gone")
    notify = NotifySettings(webhook=WebhookSettings(url="http://127.0.0.1:1", secret_file=file))
    row = _check(notify)
    assert row.answer is CheckStatus.FAILED
    assert row.found.startswith("notify.webhook.secret_file: cannot read")


def test_check_shows_the_receivers_without_a_cluster(tmp_path: Path) -> None:
    # Port 1 refuses connections.
    config = tmp_path / "headroom.toml"
    config.write_text(
        '[cluster]\nbootstrap_servers = "127.0.0.1:1"\nrequest_timeout_ms = 100\n[notify]\nlog = true\n'
        '[notify.webhook]\nurl = "http://127.0.0.1:1"\n'
    )
    output = CliRunner().invoke(headroom, ["check", "--config", str(config)]).stdout
    [webhook] = [line for line in output.splitlines() if line.startswith("Receiver webhook")]
    assert webhook.split()[2] == "no"
    assert "Receiver log" in output
