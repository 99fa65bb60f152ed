"""Arrangements of a watch for scenarios, and the exception for scenarios that cannot run."""

from __future__ import annotations

from enum import Enum


class Arrangement(str, Enum):
    """Surroundings of the watch.

    Attributes:
        PLAIN: only brokers and receivers.
        PROXIED: proxies between the watch and Kafka, one Jolokia agent, and the receivers.
        OWN_DISK: the tables are on their own file system.
        OWN_CLOCKS: watch and collector are separate processes whose wall clocks can be set.
    """

    PLAIN = "plain"
    PROXIED = "proxied"
    OWN_DISK = "own_disk"
    OWN_CLOCKS = "own_clocks"


class Void(Exception):
    """This machine cannot provide what a scenario needs; the text has the reason and the remedy."""
