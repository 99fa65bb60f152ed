"""Ports for servers that start some time after their port was chosen."""

from __future__ import annotations

import fcntl
import os
import random
import socket
from pathlib import Path
from typing import IO

# Brokers of other tests take theirs from above this range, and clients from far above it.
_RANGE = range(10_000, 15_000)
_held: list[IO[str]] = []


def own_port() -> int:
    """Return a free port that no other test gets until this process ends.

    Raises:
        OSError: all are taken.
    """
    # Not in the folder of this run: others may run beside it.
    folder = Path("/tmp") / f"headroom-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        lock = (folder / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        # The lock is the kernel's, and ends with this process.
        _held.append(lock)
        return port
    raise OSError(f"every port from {_RANGE.start} to {_RANGE.stop} is taken")
