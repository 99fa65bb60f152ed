"""``headroom balance``: how evenly brokers carry their load, and what that would be after a change of the cluster."""

from __future__ import annotations

from pathlib import Path

import click

from headroom.cli.balance.loading import load_cluster
from headroom.cli.balance.parameters import ChangeOfCluster
from headroom.cli.balance.proposal.command import propose
from headroom.cli.balance.proposal.explain import explain
from headroom.cli.balance.proposal.options import goals_option, state_option
from headroom.cli.balance.proposal.run import run
from headroom.cli.balance.proposal.status import status
from headroom.cli.balance.score_json import score_json
from headroom.cli.balance.score_text import print_score
from headroom.cli.common.options import config_option, require_options_after
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.operations.balance.requests import ClusterChange
from headroom.operations.balance.saved_state import write_loads
from headroom.operations.balance.score import score_result


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[COMMAND [ARGS]...]",
    short_help="Score how evenly brokers carry their load; propose changes and their price.",
)
@config_option
@with_format
@goals_option
@state_option
@click.option(
    "--what-if",
    "changes",
    type=ChangeOfCluster(),
    metavar="CHANGE",
    multiple=True,
    help="Score the cluster after a change: lose:3, lose-rack:a, add:7@b (broker 7 on rack b), drain:2 or "
    "grow:orders=2. Repeat it for several, one after another.",
)
@click.option(
    "--save-state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the cluster and its loads by hour, for --state.",
)
@click.pass_context
def balance(
    context: click.Context,
    config: str | None,
    goals: list[str] | None,
    state_file: Path | None,
    changes: tuple[ClusterChange, ...],
    save_state: Path | None,
) -> CommandOutcome | None:
    """Score how evenly the brokers carry their load: network in and out, requests, disk, leaders, replicas.

    A broker is in band if its load is within 10 % of the mean. It scores 1 there, and less the further it is away.
    Limits are 80 % of a capacity. Capacities of disks are read from the brokers; those of the network are settings:
    balance.network_in_capacity, balance.network_out_capacity, balance.replica_capacity.

    The load of a broker is the 95th percentile of its own sum by hour over the last 24 hours (balance.percentile,
    balance.history), from the table gold/partition_load, which headroom watch fills. Without that table, two readings
    5 s apart count. What is not known is listed with the goal that is lost. Nothing is changed.

    \b
    Example:  headroom balance
              headroom balance --what-if lose:3 --what-if grow:orders=2
              headroom balance --what-if lose-rack:a --format json
              headroom balance --save-state cluster.json
              headroom balance propose --finish-within 2h --dir balance
              headroom balance explain 3
              headroom balance status balance
              headroom balance run balance --execute
    """  # noqa: D301
    if context.invoked_subcommand is not None:
        require_options_after(context, "balance")
        return None
    cluster = load_cluster(config, state_file)
    if save_state is not None:
        write_loads(save_state, cluster.state, cluster.loads)
    result = score_result(cluster, goals, changes)
    return CommandOutcome(lambda: score_json(result), lambda: print_score(result, config))


for _command in (propose, explain, status, run):
    balance.add_command(_command)
