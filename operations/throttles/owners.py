"""Owners of throttles by the journal, for commands that must not depend on the store."""

from __future__ import annotations

from collections.abc import Mapping

from cli.common.output import echo
from planning.reassignments.run.owners import ThrottleOwner
from schemas.config import Settings
from schemas.errors import HeadroomError
from streaming.tables.throttle_owners import read_owners


def owners_or_none(settings: Settings) -> Mapping[str, ThrottleOwner]:
    """Return the owners of throttles by subject; none, with a message, if the journal cannot be read."""
    try:
        return read_owners(settings.store.path, settings.cluster.name)
    except HeadroomError as error:
        echo(f"The runs that set the throttles are unknown: {error}", err=True)
        return {}
