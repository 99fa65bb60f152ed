"""Owners of throttles by the journal, for commands that must not depend on the store."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.operations.progress import OnText
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.store.single_instance import run_process
from headroom.streaming.tables.throttle_owners import read_owners


def owners_or_none(settings: Settings, on_note: OnText) -> Mapping[str, ThrottleOwner]:
    """Return the owners of throttles by subject; none, with a note, if the journal cannot be read."""
    try:
        store, cluster = settings.store.path, settings.cluster.name
        return read_owners(store, cluster, run_process(store, cluster))
    except HeadroomError as error:
        on_note(f"The runs that set the throttles are unknown: {error}")
        return {}
