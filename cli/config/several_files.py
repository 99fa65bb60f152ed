"""Settings files of several clusters: each decides on its own cluster, and the first one on what all clusters share."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.config.load import DEFAULT_FILE, LoadedFile, load_file
from headroom.cli.config.sources import Key, all_keys, env_name
from headroom.schemas.config import KafkaSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import parse_addresses

log = logging.getLogger(__name__)

# Sections that each file has for its own cluster. A section that is not listed is shared.
_OWN_SECTIONS = frozenset({"cluster", "collect", "elections", "reassign", "balance", "migration"})
# Keys of shared sections that each file has for its own cluster: the way to the ticks topic, the advice of alerts, and
# the store of the commands, which have the journal there.
_OWN_KEYS: frozenset[Key] = frozenset(
    {
        *(("ticks", item.name) for item in fields(KafkaSettings)),
        ("ticks", "topic"),
        ("alerts", "margin_ratio"),
        ("alerts", "finish_within"),
        ("alerts", "bootstrap_servers"),
        ("store", "path"),
    }
)
_SERVERS = ("cluster", "bootstrap_servers")
_BATCHES = ("batch_partitions", "batch_partitions_per_broker", "batch_write_bytes_per_s", "capacity_bytes_per_s")
# Keys that commands take from the file of a cluster, and the watch from the first one; with the consequence.
_OF_COMMANDS: dict[Key, str] = {
    ("store", "path"): "commands with this file, such as headroom alerts, read other tables than the watch writes",
    **{("elections", name): "leader_imbalance counts other batches than headroom elections" for name in _BATCHES},
}


@dataclass(frozen=True)
class ConfiguredClusters:
    """Settings of all clusters that a command watches.

    Attributes:
        settings: settings of the first file, which configure the pipeline.
        config: absolute path of the first file; None if there is none, and all settings are in the environment.
        others: further clusters, with the settings that are in force for them.
    """

    settings: Settings
    config: str | None
    others: tuple[WatchedCluster, ...]

    @property
    def configs(self) -> list[tuple[str, str | None]]:
        """Name and settings file of each cluster."""
        others = [(watched.settings.cluster.name, watched.config) for watched in self.others]
        return [(self.settings.cluster.name, self.config), *others]


def load_clusters(configs: Sequence[str]) -> ConfiguredClusters:
    """Return the settings of all files; those of the default file if none is given.

    Raises:
        HeadroomError: a file is invalid, two files name the same cluster or the same broker, their ticks go to
            different topics, a maintenance window names another cluster, or a further file sets what only the first one
            decides to another value.
    """
    first = configs[0] if configs else None
    loaded = load_file(first)
    settings = loaded.settings
    others = tuple(
        WatchedCluster(settings_in_force(loaded, load_file(path)), os.path.abspath(path)) for path in configs[1:]
    )
    names, ticks_kafka = {settings.cluster.name}, settings.ticks_cluster().bootstrap_servers
    brokers = _brokers(settings)
    for watched in others:
        name = watched.settings.cluster.name
        if name in names:
            raise HeadroomError(
                f"{watched.config}: cluster.name {name}",
                "must not be used by another file, because it identifies rows and alerts",
                "Give every cluster a name of its own.",
            )
        names.add(name)
        same = brokers & _brokers(watched.settings)
        if same:
            # A variable would set the brokers of every file.
            raise HeadroomError(
                f"{watched.config}: cluster.bootstrap_servers",
                f"names {min(same)}, as another file does, so one cluster would be watched under two names",
                f"Name the brokers of {name}, and leave {env_name(_SERVERS)} out of the environment.",
            )
        brokers |= _brokers(watched.settings)
        theirs = (watched.settings.ticks_cluster().bootstrap_servers, watched.settings.ticks.topic)
        if theirs != (ticks_kafka, settings.ticks.topic):
            raise HeadroomError(
                f"{watched.config}: [ticks]",
                f"must lead to the topic of {first}: {settings.ticks.topic} on {ticks_kafka}",
                f'Set bootstrap_servers = "{ticks_kafka}" and topic = "{settings.ticks.topic}" in its section [ticks].',
            )
    for window in settings.alerts.maintenance:
        for name in sorted(set(window.clusters) - names):
            raise HeadroomError(
                "alerts.maintenance",
                f"has a window for the cluster {name}, which none of the settings files names",
                f"Name one of these: {', '.join(sorted(names))}.",
            )
    # Absolute, because recommended commands name it: in another folder headroom.toml may be that of another cluster.
    file = first or (DEFAULT_FILE if os.path.exists(DEFAULT_FILE) else None)
    return ConfiguredClusters(settings, file and os.path.abspath(file), others)


def _brokers(settings: Settings) -> set[str]:
    return set(parse_addresses(settings.cluster.bootstrap_servers.lower()))


def settings_in_force(first: LoadedFile, other: LoadedFile) -> Settings:
    """Return the settings of a further cluster: what its file decides, and otherwise those of the first file.

    A key of which commands and the watch have different values is logged.

    Args:
        first: the first file, which configures the pipeline.
        other: the file of the further cluster.

    Raises:
        HeadroomError: the file sets keys that only the first one decides, to other values than that.
    """
    _require_effect(first, other)
    for key, consequence in _OF_COMMANDS.items():
        if _value(first, key) != _value(other, key):
            subject = f"{'.'.join(key)} of cluster {other.settings.cluster.name}"
            log.warning("%s is not that of the first file: %s. Set both alike.", subject, consequence)
    shared = (item.name for item in fields(Settings) if item.name not in _OWN_SECTIONS)
    return replace(other.settings, **{name: _combine(first.settings, other.settings, name) for name in shared})


def _require_effect(first: LoadedFile, other: LoadedFile) -> None:
    shared = [key for key in all_keys() if key[0].split(".")[0] not in _OWN_SECTIONS and key not in _OWN_KEYS]
    without = [key for key in shared if key in other.origins and _value(first, key) != _value(other, key)]
    if without:
        raise HeadroomError(
            "; ".join(other.origins[key] for key in without),
            "has no effect: only the first settings file decides it, for all clusters",
            "Set it in the first file, or to the same in both, or leave it out here.",
        )


def _value(file: LoadedFile, key: Key) -> object:
    return attrgetter(".".join(key))(file.settings)


def _combine(first: Settings, other: Settings, name: str) -> Any:
    """Return a shared section of the first file, with the keys of it that the other file decides."""
    section, own = getattr(first, name), getattr(other, name)
    return replace(section, **{key: getattr(own, key) for of, key in _OWN_KEYS if of == name})
