"""Alerts: those that are pending or firing with all that is known, and those that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headroom.alerts.recommendations.commands import headroom_alerts_ack, headroom_alerts_silence
from headroom.alerts.text.terminal import event_commands, event_details
from headroom.dashboard.address import Address
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import AlertCard, Block, DataColumn, DataTable, Kind, Paragraph, Tone
from headroom.dashboard.views.headline import SEVERITY_TONES
from headroom.schemas.alerts import Severity
from headroom.schemas.tables import ALERT_DELIVERIES
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.delta.query import sql_text
from headroom.streaming.tables.current_alerts import CurrentAlert, suppression_lines

_SEVERITIES = {severity.value: tone for severity, tone in SEVERITY_TONES.items()}
_ENDED_COLUMNS = (
    DataColumn("tick_ms", "ended", Kind.MOMENT),
    DataColumn("severity", "severity", Kind.STATE, tones=_SEVERITIES),
    DataColumn("kind", "kind"),
    DataColumn("subject", "subject"),
    DataColumn("summary", "it was", is_long=True),
    DataColumn("fired", "fired"),
)
_DELIVERY_TONES = {
    "delivered": Tone.GOOD,
    "sending": Tone.QUIET,
    "silenced": Tone.QUIET,
    "failed": Tone.WARNING,
    "dropped": Tone.WARNING,
}
_DELIVERY_COLUMNS = (
    DataColumn("delivery_ms", "at", Kind.MOMENT),
    DataColumn("receiver", "receiver"),
    DataColumn("alert_id", "alert"),
    DataColumn("state", "state", Kind.STATE, tones=_DELIVERY_TONES),
    DataColumn("attempt", "attempt", Kind.NUMBER),
    DataColumn("answer", "answer", none=""),
)
# Deliveries that are shown, the last ones.
_MOST_DELIVERIES = 500
_DELIVERY_SQL = """SELECT delivery_ms, receiver, alert_id, state, attempt, answer FROM data
    WHERE "cluster" = {cluster} AND delivery_ms <= {until_ms} ORDER BY delivery_ms DESC LIMIT {most}"""


def alerts(site: Site, address: Address) -> Sequence[Block]:
    """Return the alerts of an address, and the notifications of them.

    Raises:
        HeadroomError: a table cannot be read.
    """
    every = site.alerts(address)
    if every is None:
        return [Paragraph("No alert is known: headroom watch makes their table before it evaluates.", Tone.UNKNOWN)]
    config = site.watched(site.cluster(address)).config
    active = [replace(alert_card(alert), quieting=_quieting(alert, config)) for alert in every if alert.is_active]
    blocks: list[Block] = [*active] or [Paragraph("No alert is pending or firing.")]
    ended = [{**vars(a.event), "fired": "yes" if a.fired else "cleared before"} for a in every if not a.is_active]
    sql = _DELIVERY_SQL.format(
        cluster=sql_text(site.cluster(address)), until_ms=site.at_ms(address), most=_MOST_DELIVERIES
    )
    rows = site.tables.rows(ALERT_DELIVERIES, sql) or []
    return [
        *blocks,
        DataTable("ended", "Ended", _ENDED_COLUMNS, ended, "No alert has ended."),
        DataTable(
            "deliveries",
            "Notifications",
            _DELIVERY_COLUMNS,
            rows,
            "No receiver is configured, or nothing was sent yet.",
        ),
    ]


def alert_card(alert: CurrentAlert) -> AlertCard:
    """Return the card of an alert."""
    event = alert.event
    tone = SEVERITY_TONES[Severity.of(event.severity)]
    about = f"{event.state} {event.severity}: {event.kind}, {event.subject}"
    return AlertCard(
        alert_id=event.alert_id,
        head=f"{about}, last changed {moment_text(event.tick_ms)}",
        summary=f"{event.summary}.",
        details=[line.strip() for line in event_details(event)],
        commands=event_commands(event),
        notes=suppression_lines(alert),
        tone=tone,
        is_open=tone is Tone.CRITICAL,
    )


def _quieting(alert: CurrentAlert, config: str | None) -> list[str]:
    """Return the commands that acknowledge or silence an alert; none of what is in force already."""
    event = alert.event
    ack = [headroom_alerts_ack(event.alert_id, config)] if alert.ack is None else []
    if alert.silenced_until_ms is not None:
        return ack
    return [*ack, headroom_alerts_silence(event.cluster, event.kind, event.subject, config)]
