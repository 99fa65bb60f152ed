"""Migrations of topics from another cluster, the origin, to the watched cluster, the target."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.schemas.config.kafka import KafkaSettings


@dataclass(frozen=True)
class OriginSettings(KafkaSettings):
    """The origin: the cluster that topics migrate from. The target is the watched cluster.

    Attributes:
        bootstrap_servers: comma-separated ``host:port`` list. Empty: there is no migration.
        name: name of the origin. With MirrorMaker 2, the alias that it has there.
    """

    name: str = "origin"


@dataclass(frozen=True)
class MigrationSettings:
    """Migrations of topics to the watched cluster.

    Attributes:
        prepare: time that a switch needs to be prepared, in seconds (or "5m"). The end offset of a partition is the one
            that its log reaches by then.
        quiet_s: time without a new record after which producers count as moved away, in seconds.
        groups: consumer groups that migrate, comma-separated. Empty: all that have committed offsets of the topics.
    """

    prepare: float = 300.0
    quiet_s: float = 10.0
    groups: str = ""
    origin: OriginSettings = field(default_factory=OriginSettings)

    def group_names(self) -> list[str]:
        """Return the groups that migrate; empty: all."""
        return [name for part in self.groups.split(",") if (name := part.strip())]
