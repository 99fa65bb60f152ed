"""Ending processes with all that they started."""

from __future__ import annotations

from contextlib import suppress

import psutil


def kill_tree(root: psutil.Process) -> int:
    """Kill a process and all that it started, and return how many processes those were.

    Args:
        root: may have ended already.
    """
    tree = [root]
    with suppress(psutil.NoSuchProcess):
        tree += root.children(recursive=True)
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree)
    return len(tree)
