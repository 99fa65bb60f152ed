"""Helpers for single steps of the demo."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Sequence

from cli.common.child_process import headroom_command
from cli.demo.scenario import PARTITIONS
from cluster.embedded.paced_producer import PacedProducer
from schemas.errors import HeadroomError
from schemas.tables import THROTTLE_HEADROOM
from streaming.delta.query_table import query

_COMMAND_S = 60.0


def run_headroom(arguments: Sequence[str]) -> None:
    """Run a command of ``headroom`` as a user would.

    Raises:
        HeadroomError: the command failed; with its standard error.
    """
    done = subprocess.run(headroom_command(*arguments), capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    if done.returncode:
        output = " ".join(done.stderr.split()) or "no error message"
        raise HeadroomError(f"headroom {arguments[0]}", f"failed: {output}", "See the command above")


def gold_age_s(store: str) -> float:
    """Return the age of the last tick in the gold tables, in seconds; infinity if there is none."""
    rows = query(store, THROTTLE_HEADROOM.path, "SELECT max(tick_ms) AS last_ms FROM data") or [{"last_ms": None}]
    last_ms = rows[0]["last_ms"]
    return math.inf if last_ms is None else time.time() - last_ms / 1000


def history_is_written(producer: PacedProducer) -> bool:
    """Return whether every partition has its history, and stop writing to those that have it."""
    sent_bytes = producer.sent_bytes
    for p in PARTITIONS:
        if sent_bytes[p.key] >= p.history_bytes:
            producer.set_rate(*p.key, 0.0)
    return all(sent_bytes[p.key] >= p.history_bytes for p in PARTITIONS)


def name_of(key: tuple[str, int]) -> str:
    """Return a partition's name as ``topic-partition``."""
    return f"{key[0]}-{key[1]}"


def moves_text() -> str:
    """Return all moves as text: replicas before and after."""
    return ", ".join(f"{name_of(p.key)} {list(p.move.before)} to {list(p.move.after)}" for p in PARTITIONS)
