"""Validation of the settings of alert receivers, beyond types and ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headroom.cli.config.problem import ONE_OF_TWO, SettingError, duplicate_secrets, quantity_errors
from headroom.schemas.alerts import Severity
from headroom.schemas.config import AlertmanagerSettings, NotifySettings, SlackSettings
from headroom.schemas.quantities import is_url, parse_urls

# Slack's API that looks up sent messages takes the id of a channel, not its name.
_CHANNEL = re.compile(r"[CGD][A-Z0-9]{6,}")
# Of Alertmanager's API, which is added to each URL.
_API_PATH = re.compile(r"/api(/v\d+(/alerts)?)?$")
# A name would be plain text, which mentions nobody.
_MENTION = r"<(?:!subteam\^S[A-Z0-9]+|@[UW][A-Z0-9]+|!here|!channel|!everyone)>"
_MENTIONS = re.compile(rf"{_MENTION}(?: {_MENTION})*")
_SEVERITIES = [severity.value for severity in reversed(Severity)]
_URL = "must be a URL that begins with http:// or https://, without a user or password in it"


def notify_errors(notify: NotifySettings) -> Iterator[SettingError]:
    """Yield an error for every violated rule of the sections ``[notify]`` and ``[notify.*]``."""
    if notify.retry_max_s < notify.retry_s:
        yield SettingError(("notify", "retry_max_s"), "must not be less than notify.retry_s")
    if notify.least_severity not in _SEVERITIES:
        yield SettingError(("notify", "least_severity"), f"must be one of {', '.join(_SEVERITIES)}")
    for name in ("dashboard_url", "runbook_url"):
        if getattr(notify, name) and not is_url(getattr(notify, name)):
            yield SettingError(("notify", name), _URL)
    yield from _slack(notify.slack)
    yield from _alertmanager(notify.alertmanager)
    if notify.webhook.url and not is_url(notify.webhook.url):
        yield SettingError(("notify.webhook", "url"), _URL)
    yield from duplicate_secrets("notify.webhook", notify.webhook, "secret")
    if (notify.webhook.secret or notify.webhook.secret_file) and not notify.webhook.url:
        yield _missing_partner("notify.webhook", "url", "a secret")


def _slack(slack: SlackSettings) -> Iterator[SettingError]:
    section = "notify.slack"
    yield from duplicate_secrets(section, slack, "token", "webhook_url")
    if slack.by_token() and slack.by_webhook():
        name = "webhook_url" if slack.webhook_url else "webhook_url_file"
        yield SettingError((section, name), "is set beside a token", ONE_OF_TWO)
    if slack.by_token() and not slack.channel:
        yield _missing_partner(section, "channel", "a token")
    if slack.channel and not slack.by_token():
        yield SettingError((section, "channel"), "has no effect without a token", "Give the token, or leave this out.")
    if slack.channel and not _CHANNEL.fullmatch(slack.channel):
        yield SettingError((section, "channel"), "must be the id of a channel, such as C0123456789, not its name")
    if slack.webhook_url and not is_url(slack.webhook_url):
        yield SettingError((section, "webhook_url"), _URL)
    for name in ("mention_critical", "mention_warning", "mention_info"):
        mention = getattr(slack, name)
        if mention and not _MENTIONS.fullmatch(mention):
            rule = "must be a mention in Slack's form, such as <!subteam^S0123456789>, <@U0123456789> or <!here>"
            yield SettingError((section, name), rule)
        elif mention and not (slack.by_token() or slack.by_webhook()):
            yield SettingError((section, name), "has no effect without a token or a webhook_url")
    if not is_url(slack.api_url):
        yield SettingError((section, "api_url"), _URL)


def _alertmanager(alertmanager: AlertmanagerSettings) -> Iterator[SettingError]:
    section = "notify.alertmanager"
    yield from quantity_errors((section, "urls"), alertmanager.urls, parse_urls)
    for url in alertmanager.instances():
        base = _API_PATH.sub("", url)
        if base != url:
            rule = f"must end before the path of the API, but {url} has it"
            yield SettingError((section, "urls"), rule, f"Write {base}: Headroom adds the path.")
    yield from duplicate_secrets(section, alertmanager, "password")
    has_password = bool(alertmanager.password or alertmanager.password_file)
    if has_password and not alertmanager.username:
        yield _missing_partner(section, "username", "a password")
    if alertmanager.username and not has_password:
        yield _missing_partner(section, "password", "a user")
    if alertmanager.username and not alertmanager.instances():
        yield _missing_partner(section, "urls", "a user")


def _missing_partner(section: str, name: str, other: str) -> SettingError:
    return SettingError((section, name), f"is not set but {other} is", "Set both or neither.")
