"""``headroom migration``: plan and run a migration between clusters, translate offsets, and verify a mirror."""

from __future__ import annotations

import click

from headroom.cli.migration.offsets import offsets
from headroom.cli.migration.plan import plan
from headroom.cli.migration.running.changing import cancel, shield
from headroom.cli.migration.running.run import run
from headroom.cli.migration.running.status import status
from headroom.cli.migration.translate import translate
from headroom.cli.migration.verify import verify


@click.group(short_help="Plan and run a migration between clusters, translate offsets of groups, verify a mirror.")
def migration() -> None:
    """Move topics from another cluster, the origin, to the watched one, the target.

    By clients that use headroom.routing, by a mirror, by a link, or by hand.

    The origin is set in section [migration.origin], the target in [cluster]. Nothing is changed without --execute.
    """


for _command in (plan, run, status, translate, offsets, verify, shield, cancel):
    migration.add_command(_command)
