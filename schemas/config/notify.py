"""Receivers of alerts: Slack, Alertmanager, a webhook and the log."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SlackSettings:
    """Slack: one message per alert, updated in place, with changes in its thread; a rise is shown in the channel too.

    Attributes:
        token: bot token (``xoxb-...``) with the scopes chat:write and channels:history, in a private channel
            groups:history. Set it with ``HEADROOM_NOTIFY__SLACK__TOKEN``. Slack is enabled by this token and
            ``channel``.
        token_file: file that contains only that token; None: not used.
        channel: channel id, such as ``C0123456789``. Slack shows it at the end of the channel's details.
        webhook_url: incoming webhook instead of a token, with one message per event. Set it with
            ``HEADROOM_NOTIFY__SLACK__WEBHOOK_URL``.
        webhook_url_file: file that contains only that URL; None: not used.
        mention_critical: mentions in a critical alert, in Slack's form: ``<!subteam^S0123456789>`` for a group,
            ``<@U0123456789>`` for a person, ``<!here>`` or ``<!channel>``; several are separated by a space. Empty:
            none.
        mention_warning: the same for alerts of severity warning.
        mention_info: the same for alerts of severity info.
        api_url: URL of the Slack API.
        timeout_s: timeout of one request including its response, in seconds.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    channel: str = ""
    webhook_url: str | None = field(default=None, repr=False)
    webhook_url_file: str | None = None
    mention_critical: str = ""
    mention_warning: str = ""
    mention_info: str = ""
    api_url: str = "https://slack.com/api/"
    timeout_s: float = 10.0

    def by_token(self) -> bool:
        """Return whether a bot token sends alerts to Slack."""
        return bool(self.token or self.token_file)

    def mention(self, severity: str) -> str:
        """Return the mentions in an alert of a severity; empty: none."""
        mentions = {"critical": self.mention_critical, "warning": self.mention_warning, "info": self.mention_info}
        return mentions.get(severity, "")

    def by_webhook(self) -> bool:
        """Return whether an incoming webhook sends alerts to Slack."""
        return bool(self.webhook_url or self.webhook_url_file)


@dataclass(frozen=True)
class AlertmanagerSettings:
    """Alertmanager, through its API v2.

    Attributes:
        urls: comma-separated ``http://host:port`` of every Alertmanager instance. Empty: disabled.
        username: user of basic authentication; None: no authentication.
        password: password of that user. Set it with ``HEADROOM_NOTIFY__ALERTMANAGER__PASSWORD``.
        password_file: file that contains only that password; None: not used.
        ssl_cafile: PEM file of the trusted authorities; None: those of the system.
        resend_s: interval at which firing alerts are re-sent, in seconds. Alertmanager resolves an alert that was not
            re-sent for four intervals.
        timeout_s: timeout of one request including its response, in seconds.
    """

    urls: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: str | None = None
    ssl_cafile: str | None = None
    resend_s: float = 60.0
    timeout_s: float = 10.0

    def instances(self) -> list[str]:
        """Return the URL of each instance, without a trailing slash."""
        return [url.strip().rstrip("/") for url in self.urls.split(",") if url.strip()]


@dataclass(frozen=True)
class WebhookSettings:
    """A web server of yours that receives each event as JSON.

    Attributes:
        url: URL to which events are posted. Empty: disabled. A token in it never appears in tables or logs.
        secret: key of the HMAC-SHA256 signature of each post; None: no signature. Set it with
            ``HEADROOM_NOTIFY__WEBHOOK__SECRET``.
        secret_file: file that contains only that secret; None: not used.
        ssl_cafile: PEM file of the trusted authorities; None: those of the system.
        timeout_s: timeout of one request including its response, in seconds.
    """

    url: str = field(default="", repr=False)
    secret: str | None = field(default=None, repr=False)
    secret_file: str | None = None
    ssl_cafile: str | None = None
    timeout_s: float = 10.0


@dataclass(frozen=True)
class NotifySettings:
    """Alert receivers besides the terminal, and retries of their delivery.

    Attributes:
        log: output of every event in the log of the process.
        least_severity: lowest severity sent to receivers: info, warning or critical.
        retry_s: wait after the first failed attempt, in seconds. It doubles with every further attempt.
        retry_max_s: maximum wait between two attempts, in seconds.
        give_up_s: time after the resolution of an alert at which its undelivered events are dropped, in seconds.
        digest_after: number of alerts firing at once above which Slack gets a single message for all of them.
        dashboard_url: dashboard link in every message; ``{cluster}``, ``{kind}``, ``{subject}``, ``{alert_id}`` and
            ``{tick_ms}`` are replaced. ``http://HOST:8600/alerts?cluster={cluster}&at={tick_ms}`` is the page of
            ``headroom dashboard`` at the moment of the alert. Empty: no link.
        runbook_url: runbook link in every message, with the same replacements. Empty: no link.
    """

    log: bool = False
    least_severity: str = "warning"
    retry_s: float = 1.0
    retry_max_s: float = 60.0
    give_up_s: float = 86_400.0
    digest_after: int = 10
    dashboard_url: str = ""
    runbook_url: str = ""
    slack: SlackSettings = field(default_factory=SlackSettings)
    alertmanager: AlertmanagerSettings = field(default_factory=AlertmanagerSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)

    def receivers(self) -> list[str]:
        """Return the names of the enabled receivers, as in ``alerts/deliveries``."""
        enabled = {
            "log": self.log,
            "slack": self.slack.by_token(),
            "slack_webhook": self.slack.by_webhook(),
            "alertmanager": bool(self.alertmanager.instances()),
            "webhook": bool(self.webhook.url),
        }
        return [name for name, is_enabled in enabled.items() if is_enabled]
