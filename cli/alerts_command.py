"""``headroom alerts``: where every alert stands, from ``alerts/events``, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from cli.config import read_settings
from cli.options import config_option, format_option
from cli.output import print_json
from cli.tables import query
from cli.undelivered import show_undelivered
from schemas.config import Settings
from schemas.findings import AlertEvent, Kind, State
from schemas.tables import ALERT_EVENTS
from streaming.plain_sql import table_url

_COLUMNS = ", ".join(f'"{name}"' for name in ALERT_EVENTS.names())

# The newest event of each alert; of events of one tick, the state that comes later in an alert's life.
_LATEST = f"""
SELECT {_COLUMNS}, fired > 0 AS fired FROM (
  SELECT *, row_number() OVER (PARTITION BY alert_id ORDER BY tick_ms DESC,
    CASE state WHEN 'resolved' THEN 2 WHEN 'firing' THEN 1 ELSE 0 END DESC, event_ms DESC) AS age,
    sum(CASE state WHEN 'firing' THEN 1 ELSE 0 END) OVER (PARTITION BY alert_id) AS fired FROM data
) WHERE age = 1 ORDER BY tick_ms DESC, alert_id
"""


@dataclass(frozen=True)
class Standing:
    """Where an alert stands.

    Attributes:
        event: its newest event.
        fired: whether it has ever fired; False of one that is resolved: it passed while it was pending.
    """

    event: AlertEvent
    fired: bool


@click.command(short_help="Show the alerts that are firing, with what puts them right.")
@config_option
@format_option
@click.option(
    "--all", "show_all", is_flag=True, help="Show those that have ended too: put right, or passed before they fired."
)
@click.option("--undelivered", is_flag=True, help="Show which events which receiver has not got, and why.")
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Show alerts of this kind only.")
def alerts(config: str | None, output_format: str, show_all: bool, undelivered: bool, kind: str | None) -> None:
    """Show the alerts that are pending or firing, newest first, each with its evidence and the commands that put it
    right.

    \b
    Example:  headroom alerts
              headroom alerts --all --kind throttle_below_leader_write --format json
              headroom alerts --undelivered
    """  # noqa: D301
    settings = read_settings(config)
    if undelivered:
        show_undelivered(settings, output_format, kind)
        return
    latest = standings(settings)
    shown = [alert for alert in latest or [] if _wanted(alert.event, show_all, kind)]
    if output_format == "json":
        print_json([as_json(alert) for alert in shown])
    elif shown:
        _print_text(shown)
    else:
        click.echo(_nothing(settings, latest))


def standings(settings: Settings) -> list[Standing] | None:
    """Return where every alert stands, the one that changed last first; None while there is no table of them.

    Raises:
        HeadroomError: the table cannot be read.
    """
    rows = query(settings.store.path, ALERT_EVENTS.path, _LATEST)
    return None if rows is None else [Standing(fired=row.pop("fired"), event=AlertEvent(**row)) for row in rows]


def as_json(alert: Standing) -> dict[str, Any]:
    """Return an alert ready for JSON: its newest event, evidence and recommendation as objects, and ``fired``."""
    return {**alert.event.as_objects(), "fired": alert.fired}


def _wanted(event: AlertEvent, show_all: bool, kind: str | None) -> bool:
    return (show_all or event.state != State.RESOLVED.value) and kind in (None, event.kind)


def _print_text(alerts: list[Standing]) -> None:
    from alerts.render import render_event

    click.echo("\n\n".join(render_event(alert.event, alert.fired) for alert in alerts))


def _nothing(settings: Settings, latest: list[Standing] | None) -> str:
    if latest is None:
        url = table_url(settings.store.path, ALERT_EVENTS.path)
        return f"No alert yet: {url} is not there. `headroom watch` makes it; start that first, with the same settings."
    told = f"No alert is pending or firing; {len(latest)} in all have ended (--all shows them)."
    return told if latest else "No alert was ever raised."
