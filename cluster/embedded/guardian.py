"""Started as a process of its own: starts the brokers for its owner, and kills them all when the owner is gone.

It reads one JSON request a line from its standard input, and answers each with one JSON line:
``{"spawn": [command, ...], "log": path}`` is answered by ``{"pid": N}`` or ``{"error": text}``, and
``{"release": true}`` by its end, the brokers left to run. The end of the input without a release means that the
owner ended, however it did: the kernel closes the pipe also after a crash or kill -9.

It has a session of its own, so a Ctrl-C at the owner's terminal reaches neither it nor the brokers, and it holds the
brokers in its process group, so that one call kills all of them. Standard library only: it is run by file name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys


def main() -> None:
    """Answer requests until released or left alone."""
    # The kernel reaps brokers that end, so that a dead broker's pid is gone and not a zombie's.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        if "release" in request:
            return
        print(json.dumps(_spawn(request["spawn"], request["log"])), flush=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _spawn(command: list[str], log: str) -> dict[str, object]:
    try:
        with open(log, "ab") as output:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    except OSError as error:
        return {"error": str(error)}
    return {"pid": child.pid}


if __name__ == "__main__":
    main()
