"""``headroom demo``: a throttled move fails and recovers, or a topic migrates, on real brokers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import click

from headroom.cli.common.logs import log_to_stderr
from headroom.cli.common.output import echo, print_table
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.config.load import load_settings
from headroom.cli.demo.beside import page_beside
from headroom.cli.demo.migration.outcome import check_migration
from headroom.cli.demo.migration.play import run_migration_demo
from headroom.cli.demo.outcome import CheckedDemo, DemoOutcome, check_demo
from headroom.cli.demo.scenario import BROKERS, DemoKafka
from headroom.cli.demo.set_up import demo_config, demo_progress, running_cluster
from headroom.cli.demo.steps import run_headroom
from headroom.cli.demo.story import DemoRun
from headroom.cluster.embedded import EmbeddedCluster
from headroom.schemas.environment import OF_MACHINE, without_settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import MIGRATION_PROGRESS, THROTTLE_HEADROOM, Table

_KEPT_FOLDER = "demo-data"
# Free space for the brokers' data and logs, with a reserve for a run that takes longer than usual.
_DISK_BYTES = 4_000_000_000
# Threads that want a core, for each core, in the mean of five minutes. The demo alone has some three.
_OVERLOADED = 4
_THROTTLES = (
    THROTTLE_HEADROOM,
    "select tick_ms, broker, role, verdict, throttle_bytes_per_s, required_bytes_per_s from t order by 1 desc, 2, 3",
)
_MIGRATIONS = (
    MIGRATION_PROGRESS,
    "select tick_ms, topic, partition, verdict, left_offsets, reason from t order by 1 desc, 2, 3",
)


@click.command(short_help="Watch a throttled move fail and recover, or a topic migrate, on real brokers.")
@click.option("--migration", is_flag=True, help="Show a migration of a topic between two clusters instead.")
@click.option("--keep", is_flag=True, help="Keep the Delta tables, the brokers' data and all logs for inspection.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help=f"Folder for them.  [default: a temporary folder; with --keep ./{_KEPT_FOLDER}]",
)
@click.option("--strict", is_flag=True, help="Fail as well if only a time was not kept, as on a busy machine.")
def demo(migration: bool, keep: bool, folder: Path | None, strict: bool) -> None:
    """Run all of Headroom against real Kafka brokers on this machine.

    A throttled reassignment runs. A leader switch makes its throttle too low. Headroom raises an alert and recommends
    a sufficient throttle. The demo applies it, the move finishes, and the alert resolves. A second move stays healthy
    all the time. The demo ends with its measurements, and with exit code 1 if any check failed. If only a time was not
    kept, it says so, and how busy the machine was, and ends with 0.

    With --migration, a topic moves from one cluster to another while an application writes it and another one reads
    it, both by headroom.routing. headroom migration run agrees on end offsets and starts, and headroom watch follows.
    Meanwhile a broker of the origin is killed. In the end all acknowledged records are counted: none may be lost,
    doubled or out of order.

    \b
    Example:  headroom demo
              headroom demo --migration
              headroom demo --migration --keep --dir kept
    """  # noqa: D301
    log_to_stderr()
    # SIGTERM stops the brokers and `headroom watch` in order, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run_folder = _prepare(folder, keep)
    kept = keep
    try:
        # Those of the environment win over the demo's file: it would change the operator's own cluster.
        with without_settings(but=OF_MACHINE):
            if migration:
                measured = run_migration_demo(run_folder)
                checked = check_migration(measured, _is_overloaded())
            else:
                checked = check_demo(run_demo(run_folder), _is_overloaded())
        _print_outcome(checked, strict)
    except HeadroomError:
        # The data of a run that failed is kept for inspection.
        kept = True
        raise
    finally:
        if kept:
            _print_locations(run_folder, *(_MIGRATIONS if migration else _THROTTLES))
        else:
            shutil.rmtree(run_folder, ignore_errors=True)


def _prepare(folder: Path | None, keep: bool) -> Path:
    """Return the folder of this run, which is new or empty.

    Raises:
        HeadroomError: the folder is not empty, cannot be created, or has too little free space.
    """
    try:
        chosen = folder or (Path(_KEPT_FOLDER) if keep else Path(tempfile.mkdtemp(prefix="headroom-demo-")))
        chosen.mkdir(parents=True, exist_ok=True)
        used, free = any(chosen.iterdir()), shutil.disk_usage(chosen).free
    except OSError as error:
        raise HeadroomError(str(folder), f"cannot be used ({error.strerror})", "Name another by --dir.") from None
    if used:
        raise HeadroomError(str(chosen), "is not empty", "Remove what is there, or name another folder by --dir.")
    if free < _DISK_BYTES:
        rule = f"has {free / 1e9:.1f} GB left, and the demo needs {_DISK_BYTES / 1e9:.0f} GB"
        raise HeadroomError(str(chosen), rule, "Make room there, or name another folder by --dir.")
    return chosen.resolve()


def run_demo(folder: Path) -> DemoOutcome:
    """Play the demo in an empty folder, and return its measurements.

    Raises:
        HeadroomError: a step of it did not happen in time, or a broker or the watch ended.
    """
    progress = demo_progress()
    text = f"Starting {len(BROKERS)} Kafka brokers on this machine"
    with running_cluster(EmbeddedCluster(folder, len(BROKERS)), progress, text) as cluster:
        return _run_story(cluster, progress)


def _run_story(cluster: EmbeddedCluster, progress: ProgressView) -> DemoOutcome:
    config = demo_config(cluster)
    settings = load_settings(str(config))
    with (
        closing(DemoKafka(settings)) as kafka,
        page_beside(config, cluster.folder / "dashboard.log", progress.print_line),
        WatchProcess(config, cluster.folder / "watch.log", subject="demo") as watch,
    ):
        return DemoRun(kafka, watch, progress, settings, config).play()


def _load() -> tuple[float, int]:
    """Return the threads that wanted a core in the mean of five minutes, and the cores."""
    return os.getloadavg()[1], os.cpu_count() or 1


def _is_overloaded() -> bool:
    load, cores = _load()
    return load > _OVERLOADED * cores


def _print_outcome(checked: CheckedDemo, strict: bool) -> None:
    """Print the measurements.

    Raises:
        HeadroomError: a check failed.
    """
    load, cores = _load()
    busy = f"this machine had a load of {load:.1f} on {cores} cores in the last five minutes"
    echo()
    print_table("What happened", ("", ""), checked.rows)
    echo()
    late = "; ".join(checked.late)
    failed = [*checked.failed, *(checked.late if strict else ())]
    if failed:
        kept = "The tables and logs of this run are kept for inspection"
        raise HeadroomError("demo", "; ".join(failed), f"{kept}; {busy}")
    if late:
        echo(f"All of it came true, but not its times: {late}; {busy}.")
        echo("With less beside it, times are kept. On your own cluster: headroom init; headroom check; headroom watch")
        return
    echo("All checks passed. On your own cluster: headroom init; headroom check; headroom watch")


def _print_locations(folder: Path, table: Table, sql: str) -> None:
    config = shlex.quote(str(folder / "headroom.toml"))
    path = folder / "headroom-data" / table.path
    # In double quotes, because the shell's single quotes enclose it.
    rows = f"QueryBuilder().register({_literal('t')}, DeltaTable({_literal(path)})).execute({_literal(sql)}).read_all()"
    script = f"from deltalake import DeltaTable, QueryBuilder; print({rows})"
    echo(f"Kept in {folder}: headroom-data (Delta tables), watch.log, the brokers' data and logs. To look:")
    report = folder / "report.html"
    # It is only to look at: without it, the command that makes it says why.
    with suppress(HeadroomError):
        run_headroom(["report", "--config", str(folder / "headroom.toml"), "--out", str(report)])
    if report.exists():
        echo(f"  {report} (what happened, to open in a browser)")
    else:
        echo(f"  headroom report --config {config} --out demo.html")
    echo(f"  headroom dashboard --config {config}")
    echo(f"  headroom alerts --all --config {config}")
    echo(f"  {shlex.quote(sys.executable)} -c {shlex.quote(script)}")


def _literal(text: object) -> str:
    return json.dumps(str(text))
