"""``headroom maintain``: the tables kept fast, once and now."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from cli.config import load_settings
from cli.options import config_option, format_option
from cli.output import print_table
from cli.pipeline import log_to_stderr
from streaming.maintenance import Failed, Maintained, Maintenance
from streaming.session import build_session
from streaming.sinks import Store


@click.command()
@config_option
@format_option
@click.pass_context
def maintain(ctx: click.Context, config: str | None, output_format: str) -> None:
    """Compact the Delta tables, drop the days that are no longer kept, and remove files that nobody reads any more.

    `headroom watch` and `headroom run record` do the same every store.maintain_every_s. How many days are kept:
    store.bronze_keep_days, silver_keep_days and gold_keep_days. Running jobs are not disturbed. If a table fails, its
    reason is shown, and the others are maintained all the same.

    \b
    Example:  headroom maintain --config headroom.toml
    """  # noqa: D301
    log_to_stderr()
    settings = load_settings(config)
    spark = build_session(settings.spark, "headroom maintain", prompt=False)
    try:
        done = Maintenance(spark, Store(spark, settings.store.path), settings.store).run()
    finally:
        spark.stop()
    if output_format == "json":
        click.echo(json.dumps([asdict(one) for one in done], default=str))
    elif done:
        print_table("", ("table", "files before", "files now", "size", "kept from"), [_row(one) for one in done])
    else:
        click.echo(f"No table of Headroom is under {settings.store.path} yet.")
    if any(isinstance(one, Failed) for one in done):
        ctx.exit(1)


def _row(one: Maintained | Failed) -> tuple[str, ...]:
    if isinstance(one, Failed):
        return one.table, "?", "?", "?", f"failed: {one.reason}"
    kept = "the beginning" if one.dropped_before is None else str(one.dropped_before)
    return one.table, str(one.files_before), str(one.files_after), f"{one.bytes_after / 1e6:.1f} MB", kept
