"""``headroom elections``: plan preferred leader elections in batches, and run them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from alerts.recommendations.commands import headroom_elections, kafka_elect
from cli.common.options import config_option, format_option
from cli.common.output import console, echo, print_json
from cli.common.parameters import BrokerIds, Names
from cli.common.progress import ProgressView
from cli.config.load import load_settings
from cli.elections.json_view import result_json, view_json, write_batches
from cli.elections.plan import ElectionPlanning
from cli.elections.run import ElectionRun, print_run, run_plan, stopping
from cli.elections.text_view import MAX_ROWS, ElectionView, print_view
from cluster.elections.executor import Cluster, ExecutionPolicy, not_quiet, when_quiet
from cluster.elections.leadership import LeadershipSnapshot
from cluster.elections.live_leadership import LiveLeadership


@click.command(short_help="Plan preferred leader elections in small batches, and run them.")
@config_option
@format_option
@click.option("--topics", type=Names(), metavar="NAME,...", help="Only partitions of these topics.")
@click.option(
    "--brokers",
    type=BrokerIds(),
    metavar="ID,...",
    help="Only partitions whose preferred leader is one of these brokers.",
)
@click.option(
    "--batches-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write each batch to a file in this folder, for kafka-leader-election.",
)
@click.option("--execute", is_flag=True, help="Run the elections; without it, only show the plan.")
@click.option("--yes", is_flag=True, help="With --execute: do not ask before the first batch.")
@click.option("--wait", is_flag=True, help="With --execute: wait until it is quiet enough.")
def elections(
    config: str | None,
    output_format: str,
    topics: list[str] | None,
    brokers: list[int] | None,
    batches_dir: Path | None,
    execute: bool,
    yes: bool,
    wait: bool,
) -> None:
    """Show brokers that do not lead all partitions of which they are the preferred leader, and plan elections.

    Elections are planned in small batches, only where they can succeed, and never so that a running move would starve.
    The preferred leader of a partition is the first of its replicas. After a restart of that broker, other brokers
    lead its partitions until it is elected again.

    Brokers count bytes by topic. The write rate of a topic is divided among its partitions by the records that each
    receives while this command measures. The read rate is divided evenly.

    With --execute, the cluster is read again before every batch. After a batch the command waits until the leaders have
    changed and all replicas are in sync. It stops at the first deviation from the plan; run it again to continue with
    the remaining partitions. Ctrl-C stops it after the current batch. Batch sizes, pauses and the quiet time: section
    [elections].

    \b
    Example:  headroom elections
              headroom elections --topics orders,payments --batches-dir batches
              headroom elections --execute
              headroom elections --execute --yes --wait    (for cron)
    """  # noqa: D301
    _check_options(execute, yes, wait)
    _silence_client_logs()
    settings = load_settings(config)
    planning = ElectionPlanning(settings, topics, brokers)
    policy = planning.policy(wait)
    progress = ProgressView(console(sys.stderr))
    with LiveLeadership(settings) as cluster:
        leadership = (
            _wait_until_quiet(cluster, policy, progress) if execute and wait else cluster.leadership_with_traffic()
        )
        view = planning.view(leadership, config)
        if output_format == "text":
            print_view(view)
        files = write_batches(batches_dir, view.plan.batches) if batches_dir is not None else []
        run = _execute(view, cluster, policy, progress, yes) if execute and view.plan.batches else None
    if output_format == "json":
        print_json({**view_json(view), **_files_json(view, files), **_run_json(view, run)})
    else:
        _print_files(view, files)
        _print_end(view, run, policy, topics, brokers)
    _exit(view, run)


def _check_options(execute: bool, yes: bool, wait: bool) -> None:
    if (yes or wait) and not execute:
        raise click.UsageError(f"{'--yes' if yes else '--wait'} has no effect without --execute.")
    if execute and not yes and not at_terminal():
        raise click.UsageError("--execute asks before the first batch; without a terminal, give --yes too.")


def at_terminal() -> bool:
    """Return whether standard input is a terminal, so that the command can ask."""
    return sys.stdin.isatty()


def _silence_client_logs() -> None:
    """Suppress the clients' logs of every attempt; the plan itself lists the brokers that did not answer."""
    for name in ("kafka", "py4j", "cluster"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _wait_until_quiet(cluster: Cluster, policy: ExecutionPolicy, progress: ProgressView) -> LeadershipSnapshot:
    """Wait until the cluster is quiet, and return its leadership then; an earlier plan would be outdated."""
    with stopping() as stop, progress.step("Waiting for a quiet time"):
        leadership = when_quiet(cluster, policy, stop, progress.note)
    if leadership is None:
        raise click.Abort
    return leadership


def _execute(
    view: ElectionView, cluster: Cluster, policy: ExecutionPolicy, progress: ProgressView, yes: bool
) -> ElectionRun | None:
    """Run the plan and return its results; None if the operator declined it at the terminal."""
    blocked_reason = policy.blocked_reason(view.leadership)
    if blocked_reason is not None and not policy.wait:
        raise not_quiet(blocked_reason)
    question = f"Elect {view.partitions()} leaders in {len(view.plan.batches)} batches?"
    if not yes and not click.confirm(question, err=True):
        return None
    with stopping() as stop:
        return run_plan(view, cluster, policy, stop, progress)


def _run_json(view: ElectionView, run: ElectionRun | None) -> dict[str, Any]:
    if run is None:
        return {"executed": False}
    stopped = run.stopped
    return {
        "executed": True,
        "results": [result_json(result) for result in run.results],
        "stopped": stopped and {"subject": stopped.subject, "rule": stopped.rule, "remedy": stopped.remedy},
        "left_partitions": view.partitions() - run.done(),
    }


def _files_json(view: ElectionView, files: Sequence[Path]) -> dict[str, Any]:
    return {"batch_files": [str(file) for file in files], "batch_commands": _kafka_commands(view, files)}


def _kafka_commands(view: ElectionView, files: Sequence[Path]) -> list[str]:
    servers = view.settings.alerts.bootstrap_servers or view.settings.cluster.bootstrap_servers
    return [kafka_elect(str(file), servers) for file in files]


def _print_files(view: ElectionView, files: Sequence[Path]) -> None:
    if files:
        echo()
        echo(f"Wrote {len(files)} files; one after the other, each once the one before has settled:")
    for command in _kafka_commands(view, files[:MAX_ROWS]):
        echo(f"  $ {command}")
    if len(files) > MAX_ROWS:
        echo(f"  and so on to {files[-1].name}")


def _print_end(
    view: ElectionView,
    run: ElectionRun | None,
    policy: ExecutionPolicy,
    topics: Sequence[str] | None,
    brokers: Sequence[int] | None,
) -> None:
    if run is not None:
        print_run(view, run)
    elif view.plan.batches:
        chosen = [f"--topics {','.join(topics)}"] if topics else []
        chosen += [f"--brokers {','.join(map(str, brokers))}"] if brokers else []
        blocked_reason = policy.blocked_reason(view.leadership)
        if blocked_reason is not None:
            echo()
            echo(f"Not now, but with --execute --wait: {blocked_reason}.")
        echo()
        echo(f"Nothing was changed. To do it: {' '.join([headroom_elections(view.config), *chosen])}")


def _exit(view: ElectionView, run: ElectionRun | None) -> None:
    """Raise the error that ended the run before its last batch, if there was one."""
    if run is None:
        return
    if run.stopped is not None:
        raise run.stopped
    if run.done() < view.partitions():
        raise click.Abort
