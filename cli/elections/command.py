"""``headroom elections``: plan preferred leader elections in batches, and run them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headroom.cli.common.changing import execute_option_of, print_note, require_answer, require_execute
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, in_text, with_format
from headroom.cli.common.output import console
from headroom.cli.common.parameters import BrokerIds, TopicNames
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.stopping import stopping
from headroom.cli.config.load import load_settings
from headroom.cli.elections.json_view import result_json
from headroom.cli.elections.text_view import print_plan, print_result
from headroom.cluster.elections.executor import Cluster, ExecutionPolicy, not_quiet, when_quiet
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.live.live_cluster import LiveCluster
from headroom.operations.elections.batch_files import read_batch, write_batches
from headroom.operations.elections.plan import ElectionPlanning
from headroom.operations.elections.result import ElectionRun, ElectionScope, ElectionsResult, PlannedElections
from headroom.operations.elections.run import run_plan


@click.command(short_help="Plan preferred leader elections in small batches, and run them.")
@config_option
@with_format
@click.option("--topics", type=TopicNames(), metavar="NAME,...", help="Only partitions of these topics.")
@click.option(
    "--brokers",
    type=BrokerIds(),
    metavar="ID,...",
    help="Only partitions whose preferred leader is one of these brokers.",
)
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Only the partitions in this file, as written for kafka-leader-election --path-to-json-file.",
)
@click.option(
    "--batches-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write each batch to a file in this folder, for kafka-leader-election.",
)
@execute_option_of("Run the elections; without it, only show the plan.")
@click.option("--yes", is_flag=True, help="With --execute: do not ask before the first batch.")
@click.option("--wait", is_flag=True, help="With --execute: wait until it is quiet enough.")
def elections(
    config: str | None,
    topics: list[str] | None,
    brokers: list[int] | None,
    file: Path | None,
    batches_dir: Path | None,
    execute: bool,
    yes: bool,
    wait: bool,
) -> CommandOutcome:
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
              headroom elections --file balance/elections-01.json
              headroom elections --execute
              headroom elections --execute --yes --wait    (for cron)
    """  # noqa: D301
    require_execute(execute, yes, wait)
    require_answer(execute, yes)
    silence_clients()
    settings = load_settings(config)
    chosen = None if file is None else read_batch(file)
    planning = ElectionPlanning(settings, ElectionScope(topics, brokers, file, chosen))
    policy = planning.policy(wait)
    progress = ProgressView(console(sys.stderr))
    with LiveCluster(settings) as cluster:
        leadership = (
            _wait_until_quiet(cluster, policy, progress) if execute and wait else cluster.leadership_with_traffic()
        )
        planned = planning.plan(leadership, config)
        if in_text():
            # Before anything is changed, because the operator decides by it.
            print_plan(planned)
        # Before the run, so that the operator has the files of the whole plan if it stops.
        files = write_batches(batches_dir, planned.plan.batches) if batches_dir is not None else []
        run = _execute(planned, cluster, policy, progress, yes) if execute and planned.plan.batches else None
    result = ElectionsResult(planned, files, run, policy.blocked_reason(leadership))
    return CommandOutcome(lambda: result_json(result), lambda: print_result(result), error=_error(result))


def _wait_until_quiet(cluster: Cluster, policy: ExecutionPolicy, progress: ProgressView) -> LeadershipSnapshot:
    """Wait until the cluster is quiet, and return its leadership then; an earlier plan would be outdated."""
    with stopping() as stop, progress.step("Waiting for a quiet time"):
        leadership = when_quiet(cluster, policy, stop, progress.note)
    if leadership is None:
        raise click.Abort
    return leadership


def _execute(
    planned: PlannedElections, cluster: Cluster, policy: ExecutionPolicy, progress: ProgressView, yes: bool
) -> ElectionRun | None:
    """Run the plan and return its results; None if the operator declined it at the terminal."""
    blocked_reason = policy.blocked_reason(planned.leadership)
    # Before the question, so that nobody answers it in vain.
    if blocked_reason is not None and not policy.wait:
        raise not_quiet(blocked_reason)
    question = f"Elect {planned.partitions()} leaders in {len(planned.plan.batches)} batches?"
    if not yes and not click.confirm(question, err=True):
        return None
    with stopping() as stop:
        return run_plan(planned, cluster, policy, stop, progress, print_note)


def _error(result: ElectionsResult) -> Exception | None:
    """Return what ended the run before its last batch; None if nothing did."""
    if result.run is None:
        return None
    if result.run.stopped is not None:
        return result.run.stopped
    # A signal has ended the run: no error, but a script must not take the rest for done.
    return click.Abort() if result.left_partitions() else None
