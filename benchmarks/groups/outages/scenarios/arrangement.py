"""How a watch is set up that scenarios are played with, and what keeps a scenario from being played at all."""

from __future__ import annotations

from enum import Enum


class Arrangement(str, Enum):
    """What is around the watch.

    Attributes:
        PLAIN: nothing besides brokers and receivers.
        PROXIED: proxies between it and Kafka, one agent of Jolokia, and the receivers.
        OWN_DISK: its tables are on a file system of their own.
        OWN_CLOCKS: its wall clock and that of its collector, which is a process beside it, can be set.
    """

    PLAIN = "plain"
    PROXIED = "proxied"
    OWN_DISK = "own_disk"
    OWN_CLOCKS = "own_clocks"


class Void(Exception):
    """What a scenario needs is not to be had on this machine; the text says what, and what to do."""
