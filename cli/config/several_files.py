"""Settings files of several clusters: each decides on its own cluster, and the first one on what all clusters share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from headroom.cli.config.load import LoadedFile
from headroom.cli.config.sources import Key, all_keys
from headroom.schemas.config import KafkaSettings, Settings
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)

# Sections that each file has for its own cluster. A section that is not listed is shared.
_OWN_SECTIONS = frozenset({"cluster", "collect", "elections", "reassign", "balance"})
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
_BATCHES = ("batch_partitions", "batch_partitions_per_broker", "batch_write_bytes_per_s", "capacity_bytes_per_s")
# Keys that commands take from the file of a cluster, and the watch from the first one; with the consequence.
_OF_COMMANDS: dict[Key, str] = {
    ("store", "path"): "commands with this file, such as headroom alerts, read other tables than the watch writes",
    **{("elections", name): "leader_imbalance counts other batches than headroom elections" for name in _BATCHES},
}


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
    return replace(other.settings, **{name: _combined(first.settings, other.settings, name) for name in shared})


def _require_effect(first: LoadedFile, other: LoadedFile) -> None:
    without = [key for key in _shared_keys() if key in other.origins and _value(first, key) != _value(other, key)]
    if without:
        raise HeadroomError(
            "; ".join(other.origins[key] for key in without),
            "has no effect: only the first settings file decides it, for all clusters",
            "Set it in the first file, or to the same in both, or leave it out here.",
        )


def _shared_keys() -> Iterator[Key]:
    for section, name in all_keys():
        if section.split(".")[0] not in _OWN_SECTIONS and (section, name) not in _OWN_KEYS:
            yield section, name


def _value(file: LoadedFile, key: Key) -> object:
    return attrgetter(".".join(key))(file.settings)


def _combined(first: Settings, other: Settings, name: str) -> Any:
    """Return a shared section of the first file, with the keys of it that the other file decides."""
    section, own = getattr(first, name), getattr(other, name)
    return replace(section, **{key: getattr(own, key) for of, key in _OWN_KEYS if of == name})
