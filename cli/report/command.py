"""``headroom report``: writes what happened in a range of time as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo
from headroom.cli.common.parameters import Moment, TopicName
from headroom.cli.config.load import read_settings
from headroom.operations.files import write_own
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import moment_text, size_text
from headroom.streaming.delta.locations import require_present

_HOUR_MS = 3_600_000
# As the report begins, by which an older one is known.
_BEGINNING = b"<!doctype html>\n<!-- A report of Headroom -->"


@click.command(short_help="Write what happened during a move as one HTML file, for the post-mortem.")
@config_option
@with_format
@click.option("--from", "first_ms", type=Moment(), metavar="TIME", help="Start; default: an hour before the end.")
@click.option("--to", "last_ms", type=Moment(), metavar="TIME", help="End; default: the newest tick.")
@click.option("--topic", type=TopicName(), help="Only moves of this topic, and leader switches of it.")
@click.option("--cluster", help="Cluster in the tables; default: that of the settings.")
@click.option(
    "--out", "file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="HTML file to write."
)
def report(
    config: str | None,
    first_ms: int | None,
    last_ms: int | None,
    topic: str | None,
    cluster: str | None,
    file: Path,
) -> CommandOutcome:
    """Write a report of a range of time: progress, expected finishes, throttles, alerts, and what commands changed.

    Reads the tables alone, also those of a store that was copied elsewhere. The file has no script and loads nothing,
    so that it opens without a network, and can be attached to a ticket.

    \b
    Example:  headroom report --out move.html
              headroom report --from 2026-11-28T22:00Z --to 2026-11-29T02:00Z --topic orders --out move.html
    """  # noqa: D301
    settings = read_settings(config)
    require_present(settings.store.path)
    # Only here: no other command waits for them.
    from headroom.dashboard.address import FIRST_MS, LAST_MS
    from headroom.dashboard.data.timeline import TickRange
    from headroom.dashboard.report import report as made
    from headroom.dashboard.site import Site

    site = Site([WatchedCluster(settings, config)])
    name = cluster or settings.cluster.name
    newest_ms = site.moments.tick_at(name, LAST_MS) if last_ms is None else last_ms
    if newest_ms is None:
        rule = f"has no tick of cluster {name}"
        raise HeadroomError(settings.store.path, rule, "Name another by --cluster, or correct store.path.")
    begin_ms = newest_ms - _HOUR_MS if first_ms is None else first_ms
    if not FIRST_MS <= begin_ms <= newest_ms <= LAST_MS:
        rule = f"is not a range: {moment_text(begin_ms)} to {moment_text(newest_ms)}"
        raise HeadroomError("--from and --to", rule, "Give a start before the end.")
    text = made(site, TickRange(name, begin_ms, newest_ms, topic)).lstrip()
    write_own(file, text, lambda content: content.startswith(_BEGINNING), "a report")
    size = len(text.encode())
    times = f"{moment_text(begin_ms)} to {moment_text(newest_ms)}"
    return CommandOutcome(
        lambda: {"file": str(file), "cluster": name, "from_ms": begin_ms, "to_ms": newest_ms, "bytes": size},
        lambda: echo(f"Wrote {file}: cluster {name}, {times}, {size_text(size)}."),
    )
