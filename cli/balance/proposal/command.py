"""``headroom balance propose``: the changes that balance the load, what each gains and costs, and their files."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from headroom.cli.balance.loading import load_cluster
from headroom.cli.balance.proposal.files import write_files
from headroom.cli.balance.proposal.json_view import proposal_json
from headroom.cli.balance.proposal.options import ProposalOptions, proposal_options
from headroom.cli.balance.proposal.plot import write_gain_plot
from headroom.cli.balance.proposal.text_view import print_proposal
from headroom.cli.common.changing import print_notes
from headroom.cli.common.options import MAX_DURATION_S, config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.parameters import BrokerIds, Duration, WholeNumber
from headroom.operations.balance.proposal_result import proposal_result
from headroom.operations.balance.proposal_store import store_proposal
from headroom.operations.balance.saved_actions import saved_actions
from headroom.operations.balance.saved_state import write_loads


@click.command(short_help="Propose changes that balance the load, with what each gains and costs.")
@config_option
@with_format
@proposal_options
@click.option(
    "--finish-within",
    type=Duration(MAX_DURATION_S),
    metavar="DURATION",
    help="Price the batches at the least throttle that ends all of them in this time, such as 2h.",
)
@click.option(
    "--prefix", type=WholeNumber(least=1), metavar="N", help="Make batches of the first N actions; default: all."
)
@click.option(
    "--until-in-band",
    "in_band",
    type=BrokerIds(),
    metavar="ID,...",
    help="Make batches of the fewest first actions that bring these brokers into the bands of their loads and within "
    "their limits. An alert on load prints it.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write for each batch its plan, its rollback and its elections, and proposal.json.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg", help="Draw the gain by bytes copied."
)
@click.option(
    "--save-state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the cluster and its loads by hour that the proposal rests on, for --state.",
)
def propose(
    config: str | None,
    options: ProposalOptions,
    finish_within: float | None,
    prefix: int | None,
    in_band: list[int] | None,
    folder: Path | None,
    plot: Path | None,
    save_state: Path | None,
) -> CommandOutcome:
    """Propose the changes that bring brokers into their bands, ordered by what they gain for each byte copied.

    Elections come first: they move what a broker sends and serves, and copy nothing. Then replicas move, or change
    places. Every prefix of the list keeps all limits, so you can stop after any action: --prefix N. The table shows
    what prefixes gain, copy and take.

    The price of a batch: bytes to copy, the rate that its throttle must exceed, the throttle that survives any single
    leader switch, the bytes that a destination stores in addition until the batch ends, and the time.

    With --dir each batch is a file for headroom reassign run and kafka-reassign-partitions.sh, with the file that takes
    it back and, if leaders change, the one for headroom elections. The commands are printed. Nothing is changed.

    The proposal is kept in the tables gold/balance_proposal and gold/balance_action, if the store exists.

    \b
    Example:  headroom balance propose
              headroom balance propose --elections-only --dir balance
              headroom balance propose --until-in-band 3 --dir balance
              headroom balance propose --max-bytes 500GB --finish-within 6h --dir balance --plot gain.svg
              headroom balance propose --topics orders,payments --throttle 50MB --prefix 12 --dir balance
              headroom balance propose --goals disk,leaders --exclude logs,broker:3 --format json
    """  # noqa: D301
    if prefix is not None and in_band is not None:
        raise click.UsageError("--prefix and --until-in-band both choose the first actions: give one of them.")
    # Millions of objects that stay make every collection slow, and the process ends soon.
    gc.disable()
    cluster = load_cluster(config, options.state_file)
    brokers = None if in_band is None else frozenset(in_band)
    proposed = None
    try:
        result = proposal_result(cluster, options, finish_within, prefix, brokers)
        proposed = saved_actions(result.proposal, options.limits(cluster.settings))
    finally:
        # A state for which nothing can be proposed is asked about, too.
        if save_state is not None:
            write_loads(save_state, cluster.state, cluster.loads, proposed)
    files = write_files(folder, result) if folder is not None else []
    if plot is not None:
        write_gain_plot(plot, result.proposal)
    print_notes(store_proposal(result))
    return CommandOutcome(lambda: proposal_json(result), lambda: print_proposal(result, files, config))
