"""Migrations of topics from one cluster, the origin, to another, the target: offsets, routes and losses."""

# Callers outside Headroom are promised these names here, whatever the modules below are called.
from headroom.planning.migration.agreed_end import end_offset, reached_in_s
from headroom.planning.migration.losses import lost_at_switch, lost_to_retention
from headroom.planning.migration.offset_syncs import translate
from headroom.planning.migration.split import Place, Routed, Split, client_offset, place, route
from headroom.schemas.migrations import MigrationStatus

__all__ = [
    "MigrationStatus",
    "Place",
    "Routed",
    "Split",
    "client_offset",
    "end_offset",
    "lost_at_switch",
    "lost_to_retention",
    "place",
    "reached_in_s",
    "route",
    "translate",
]
