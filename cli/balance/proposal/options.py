"""Options of ``headroom balance propose`` and ``explain`` that decide which changes are proposed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from headroom.cli.balance.parameters import ByteCount, ExclusionList, GoalNames
from headroom.cli.common.options import option_group
from headroom.cli.common.parameters import Rate, TopicNames, WholeNumber
from headroom.operations.balance.requests import ProposalRequest

goals_option = click.option(
    "--goals",
    type=GoalNames(),
    metavar="NAME,...",
    help="Only these goals: built-in names, entry points or module:Class. Limits always hold. Default: balance.goals.",
)
state_option = click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Use a saved state (headroom balance --save-state, headroom plan --save-state), without a cluster.",
)
_OPTIONS = (
    goals_option,
    click.option("--topics", type=TopicNames(), metavar="A,B", help="Change only partitions of these topics."),
    click.option(
        "--exclude",
        type=ExclusionList(),
        metavar="NAME,...",
        help="Leave topics and brokers alone: payments,broker:3. An excluded broker gives and takes nothing.",
    ),
    click.option("--max-bytes", type=ByteCount(), metavar="BYTES", help="Copy at most this much, such as 500GB."),
    click.option("--max-moves", type=WholeNumber(least=1), metavar="N", help="Copy at most this many replicas."),
    click.option("--elections-only", is_flag=True, help="Propose only what copies nothing."),
    click.option(
        "--throttle",
        type=Rate(),
        metavar="RATE",
        help="Throttle that every batch has to fit, such as 50MB. Default: for --finish-within, in force, "
        "cluster.replication_capacity, or the least that survives a leader switch.",
    ),
    state_option,
)


@dataclass(frozen=True)
class ProposalOptions(ProposalRequest):
    """Values of the options.

    Attributes:
        state_file: saved state; None: the running cluster.
    """

    state_file: Path | None = None


# Decorator of a command, which gets the options as ``options``.
proposal_options = option_group(_OPTIONS, ProposalOptions, "options")
