"""``headroom reassign``: carry out reassignment plans, and what belongs to that."""

from __future__ import annotations

import click

from headroom.cli.reassign.cancel import cancel
from headroom.cli.reassign.clean import clean
from headroom.cli.reassign.rollback import rollback
from headroom.cli.reassign.run import run
from headroom.cli.reassign.runs import runs
from headroom.cli.reassign.verify import verify


@click.group(short_help="Run a reassignment plan, verify it, cancel it, or roll it back.")
def reassign() -> None:
    """Carry out a reassignment plan, see where it is, cancel it, roll it back, or remove what a killed run has set.

    Nothing is changed without --execute. Running reassignments are listed by headroom reassignments.
    """


for _command in (run, verify, cancel, rollback, runs, clean):
    reassign.add_command(_command)
