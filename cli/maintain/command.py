"""``headroom maintain``: one maintenance of the Delta tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from headroom.cli.common.logs import log_to_stderr
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, print_table
from headroom.cli.config.load import load_settings
from headroom.cli.maintain.repair import print_failed, print_repairs, repair_store
from headroom.cli.watch.pipeline import require_store
from headroom.schemas.config import Settings
from headroom.schemas.text.amounts import size_text
from headroom.streaming.delta.locations import require_present, require_writable
from headroom.streaming.delta.maintenance import MaintenanceFailure, MaintenanceResult
from headroom.streaming.session_profile import SessionProfile


@click.command()
@config_option
@with_format
@click.option("--repair", is_flag=True, help="Only repair tables with damaged files, and show which rows are lost.")
def maintain(config: str | None, repair: bool) -> CommandOutcome:
    """Compact the Delta tables, delete expired days, and remove files that are no longer used.

    It first writes the complete hours of gold/partition_load, the write rates that estimates of moves rest on.

    `headroom watch` and `headroom run record` do the same every store.maintain_every_s. Retention:
    store.bronze_keep_days, silver_keep_days, gold_keep_days, partition_load_keep_days, broker_load_keep_days and
    migration_syncs_keep_days. Running jobs are not disturbed. A table that fails is reported; the others are still
    maintained.

    After a disk has lost or damaged files, --repair makes the tables readable without them. It shows each file, its
    fault and the rows that are lost. Damaged files are moved to the folder _damaged next to their table. Nothing else
    is lost, and jobs that wait for a table continue automatically. `headroom check` shows damaged files. Damaged
    checkpoints are moved aside too. A job does that itself when it starts; for one that runs, --repair waits two
    minutes.

    \b
    Example:  headroom maintain --config headroom.toml
              headroom maintain --repair
    """  # noqa: D301
    log_to_stderr()
    settings = load_settings(config)
    if repair:
        require_present(settings.store.path)
        # Not the folders of tables: there may be files in their places.
        require_writable(settings.store.path)
        repairs = repair_store(settings.store)
        return CommandOutcome(
            lambda: [asdict(one) for one in repairs],
            lambda: print_repairs(repairs),
            lambda: print_failed(repairs),
            exit_code=any(not one.mended for one in repairs),
            json_in_one_line=True,
        )
    require_store(settings)
    done = _maintain(settings)
    return CommandOutcome(
        lambda: [_as_json(one) for one in done],
        lambda: _print(done, settings.store.path),
        exit_code=any(isinstance(one, MaintenanceFailure) for one in done),
        json_in_one_line=True,
    )


def _print(done: Sequence[MaintenanceResult | MaintenanceFailure], store: str) -> None:
    if done:
        print_table("", ("table", "files before", "files now", "size", "kept from"), [_row(one) for one in done])
    else:
        echo(f"No table of Headroom is under {store} yet.")


def _maintain(settings: Settings) -> list[MaintenanceResult | MaintenanceFailure]:
    from headroom.streaming.jobs.upkeep import Upkeep
    from headroom.streaming.session import build_session
    from headroom.streaming.supervision.jvm import spark_failures

    spark = build_session(settings.spark, "headroom maintain", SessionProfile.THROUGHPUT)
    try:
        with spark_failures():
            return Upkeep(spark, settings.store).run()
    finally:
        spark.stop()


def _as_json(one: MaintenanceResult | MaintenanceFailure) -> dict[str, Any]:
    fields = asdict(one)
    # JSON has no dates.
    day = fields.get("dropped_before")
    return fields | ({"dropped_before": str(day)} if day is not None else {})


def _row(one: MaintenanceResult | MaintenanceFailure) -> tuple[str, ...]:
    if isinstance(one, MaintenanceFailure):
        return one.table, "?", "?", "?", f"failed: {one.reason}"
    kept = "the beginning" if one.dropped_before is None else str(one.dropped_before)
    return one.table, str(one.files_before), str(one.files_after), size_text(one.bytes_after), kept
