"""Guardian process: starts the brokers for its owner, and kills all of them when the owner has ended.

It reads one JSON request per line from standard input and answers each with one JSON line:
``{"spawn": [command, ...], "log": path}`` is answered by ``{"pid": N}`` or ``{"error": text}``, and
``{"release": true}`` by its exit, which leaves the brokers running. End of input without a release means that the
owner has ended: the kernel closes the pipe even after a crash or kill -9. An answer that nobody reads, or half of a
request, means the same: the owner has ended while it asked.

It has its own session, so Ctrl-C at the owner's terminal reaches neither it nor the brokers. The brokers are in its
process group, so that one call kills all of them. It uses only the standard library, because it is run by file name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys


def main() -> None:
    """Answer requests until released; kill the brokers if this ends without a release, however it ends."""
    # Lets the kernel reap ended brokers, so that they do not become zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    released = False
    try:
        released = _answer()
    finally:
        if not released:
            os.killpg(os.getpgrp(), signal.SIGKILL)


def _answer() -> bool:
    """Answer requests; return whether released."""
    for line in sys.stdin:
        request = json.loads(line)
        if "release" in request:
            return True
        print(json.dumps(_spawn(request["spawn"], request["log"])), flush=True)
    return False


def _spawn(command: list[str], log: str) -> dict[str, object]:
    try:
        with open(log, "ab") as output:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    except OSError as error:
        return {"error": str(error)}
    return {"pid": child.pid}


if __name__ == "__main__":
    main()
