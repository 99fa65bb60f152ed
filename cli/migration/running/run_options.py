"""Options of ``headroom migration run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from headroom.cli.migration.options import require_names
from headroom.operations.migration.running.run import MigrationRunRequest
from headroom.planning.migration.run.next_step import RunGoal
from headroom.planning.migration.run.seen import RunTerms
from headroom.schemas.config import Settings
from headroom.schemas.migrations import METHODS, MigrationMethod
from headroom.schemas.text import shell_quoted


@dataclass(frozen=True)
class MigrationRunOptions:
    """Options of a run.

    Attributes:
        method: how records and readers get to the target.
        routers: names of routers.
        until: how far it brings the partitions.
        drop: whether the origin's topics are deleted in the end.
        accept_loss: whether readers continue on the target where the origin has lost records.
        ignore_origin: whether readers give up an origin that is down.
        end_here: whether a nearer end offset is agreed for partitions that do not get to theirs.
        unless_running: whether nothing is done while another run of the migration is under way.
    """

    method: str
    routers: tuple[str, ...]
    until: str
    drop: bool
    accept_loss: bool
    ignore_origin: bool
    end_here: bool
    unless_running: bool

    def require_consistent(self) -> None:
        """Raise a usage error for options that do not go together."""
        if self.drop and self.until != RunGoal.AGED.value:
            raise click.UsageError("--drop deletes topics that readers may still need; give --until aged too.")
        if self.routers and self.method != MigrationMethod.ROUTED.value:
            raise click.UsageError(f"--router has no effect with --method {self.method}.")
        if self.end_here and self.method != MigrationMethod.ROUTED.value:
            raise click.UsageError(f"--end-here has no effect with --method {self.method}: its end is the log end.")
        if self.end_here and self.until == RunGoal.STARTED.value:
            raise click.UsageError("--end-here brings partitions to their end; --until started ends before that.")

    def request(self, topics: Sequence[str], name: str, settings: Settings) -> MigrationRunRequest:
        """Return what the run is asked for."""
        terms = RunTerms(
            name,
            MigrationMethod(self.method),
            tuple(dict.fromkeys(self.routers)),
            settings.migration.prepare,
            self.ignore_origin,
            self.accept_loss,
            self.end_here,
        )
        return MigrationRunRequest(topics, terms, RunGoal(self.until), self.drop)

    def words(self, topics: Sequence[str], name: str) -> list[str]:
        """Return the words of the command with these options."""
        words = ["migration", "run", *topics, "--name", shell_quoted(name), "--method", self.method]
        words += [word for router in self.routers for word in ("--router", shell_quoted(router))]
        words += ["--until", self.until] if self.until != RunGoal.MIGRATED.value else []
        flags = {
            "--drop": self.drop,
            "--accept-loss": self.accept_loss,
            "--ignore-origin": self.ignore_origin,
            "--end-here": self.end_here,
            "--unless-running": self.unless_running,
        }
        return words + [flag for flag, is_given in flags.items() if is_given]


RUN_OPTIONS = (
    click.option(
        "--method",
        type=click.Choice(METHODS),
        required=True,
        help="How records and clients get to the target: routed, clients use headroom.routing; drained, nothing is "
        "copied and clients are moved by hand; mirrored, by MirrorMaker 2; linked, with the same offsets.",
    ),
    click.option(
        "--router",
        "routers",
        multiple=True,
        callback=require_names,
        metavar="NAME",
        help="Process that uses headroom.routing, by the name that it has there; may be given several times. All have "
        "to agree before the start.",
    ),
    click.option(
        "--until",
        type=click.Choice([goal.value for goal in RunGoal]),
        default=RunGoal.MIGRATED.value,
        show_default=True,
        help="End when all partitions are so far: started, the target is in use; migrated, the origin is at its end "
        "offset; aged, retention has deleted all before it.",
    ),
    click.option(
        "--drop", is_flag=True, help="With --until aged: delete the origin's topics once all groups have passed."
    ),
    click.option(
        "--accept-loss",
        is_flag=True,
        help="Continue on the target where the origin's log has come back shorter than the end offset.",
    ),
    click.option(
        "--ignore-origin",
        is_flag=True,
        help="Give up an origin that is down, and what readers have not read of a migrated one, for good.",
    ),
    click.option(
        "--end-here",
        is_flag=True,
        help="Agree on a nearer end offset for partitions that never get to theirs, or not within twice "
        "migration.prepare.",
    ),
    click.option(
        "--unless-running",
        is_flag=True,
        help="Do nothing while another run of the migration is under way, as far as the store shows it.",
    ),
)
