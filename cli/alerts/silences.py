"""``headroom alerts ack|silence|silences|unsilence``: acknowledgements and silences, kept in ``alerts/marks``."""

from __future__ import annotations

from dataclasses import asdict

import click

from headroom.cli.alerts.suppressing import SilenceRequest, acknowledge, create_silence, end_silence, list_silences
from headroom.cli.alerts.suppression_views import (
    created_json,
    ended_json,
    print_acknowledged,
    print_created,
    print_ended,
    print_silences,
    silences_json,
)
from headroom.cli.common.options import MAX_DURATION_S, config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.parameters import Duration, Moment
from headroom.cli.config.load import read_settings
from headroom.schemas.alerts import AlertKind

by_option = click.option("--by", metavar="NAME", help="Author; default: the login name.")


@click.command()
@click.argument("alert_id")
@click.option("--note", default="", metavar="TEXT", help="Remark for other operators.")
@by_option
@config_option
@with_format
def ack(alert_id: str, note: str, by: str | None, config: str | None) -> CommandOutcome:
    """Acknowledge an alert: an operator is aware of it. ALERT_ID is an id from `headroom alerts`, or its beginning.

    Receivers get no further update of the alert until its severity rises or it escalates. They still get its
    resolution. The acknowledgement ends with the alert.

    \b
    Example:  headroom alerts ack 46ddbd3ca4b9fd00
              headroom alerts ack 46dd --note "raising the throttle" --by anna
    """  # noqa: D301
    done = acknowledge(read_settings(config), alert_id, note, by)
    return CommandOutcome(lambda: asdict(done.record), lambda: print_acknowledged(done))


@click.command(short_help="Silence alerts for a period.")
@click.option("--cluster", metavar="NAME", help="Alerts of this cluster.")
@click.option("--kind", type=click.Choice([kind.value for kind in AlertKind]), help="Alerts of this kind.")
@click.option(
    "--subject", metavar="TEXT", help='Alerts on this subject; * matches any text, ? one character: "broker 2 as *".'
)
@click.option(
    "--for",
    "seconds",
    type=Duration(MAX_DURATION_S),
    required=True,
    metavar="DURATION",
    help="Duration: 90s, 30m, 2h, 1h30m, 2d.",
)
@click.option(
    "--starts",
    "starts_ms",
    type=Moment(),
    metavar="TIME",
    help="Start, such as 2026-11-22T22:00Z; UTC if no zone is given. Default: now.",
)
@click.option("--note", required=True, metavar="TEXT", help="Reason.")
@by_option
@config_option
@with_format
def silence(
    cluster: str | None,
    kind: str | None,
    subject: str | None,
    seconds: float,
    starts_ms: int | None,
    note: str,
    by: str | None,
    config: str | None,
) -> CommandOutcome:
    """Silence alerts for a period that starts now or at --starts: receivers are not notified of matching alerts.

    Give at least one of --cluster, --kind and --subject; an alert has to match all that are given. If an alert still
    fires when the silence ends, receivers are notified then. An alert that fires and resolves during the silence is
    never sent. `headroom alerts` shows silenced alerts as usual.

    \b
    Example:  headroom alerts silence --cluster orders --for 2h --note "disks are replaced"
              headroom alerts silence --subject "broker 2 as *" --for 30m --note "broker 2 restarts"
              headroom alerts silence --kind no_data --starts 2026-11-22T22:00Z --for 4h --note "agents are updated"
    """  # noqa: D301
    # With none of them it would match every alert, also of clusters that are not watched yet.
    if cluster is None and kind is None and subject is None:
        raise click.UsageError("Give at least one of --cluster, --kind and --subject.")
    if "" in (cluster, subject):
        raise click.UsageError("--cluster and --subject must not be empty: no alert has such a name.")
    request = SilenceRequest(cluster, kind, subject, seconds, starts_ms, note, by)
    created = create_silence(read_settings(config), request)
    return CommandOutcome(lambda: created_json(created), lambda: print_created(created))


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Also show silences that have ended.")
@config_option
@with_format
def silences(show_all: bool, config: str | None) -> CommandOutcome:
    """Show active and planned silences. The windows of [[alerts.maintenance]] are not listed; see headroom.toml.

    \b
    Example:  headroom alerts silences
              headroom alerts silences --all --format json
    """  # noqa: D301
    entries = list_silences(read_settings(config), with_ended=show_all)
    return CommandOutcome(lambda: silences_json(entries), lambda: print_silences(entries))


@click.command()
@click.argument("silence_id")
@by_option
@config_option
@with_format
def unsilence(silence_id: str, by: str | None, config: str | None) -> CommandOutcome:
    """End an active silence or cancel a planned one. SILENCE_ID is an id from `headroom alerts silences`, or its
    beginning.

    Within seconds, receivers are notified of the alerts that it matched and that still fire.

    \b
    Example:  headroom alerts unsilence 8a41c0ffee123456
    """  # noqa: D301
    ended = end_silence(read_settings(config), silence_id, by)
    return CommandOutcome(lambda: ended_json(ended), lambda: print_ended(ended))
