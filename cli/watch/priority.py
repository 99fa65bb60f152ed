"""CPU priority of the processes of a session."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def lower_session(pid: int, nice: int) -> None:
    """Lower the CPU priority of all processes of a session.

    With autogroups, Linux divides CPU time among sessions first, and the nice value of a process counts only within its
    session. Without autogroups this changes nothing.

    Args:
        pid: id of a process of the session.
        nice: nice value of the session, 0 to 19; 0 changes nothing.
    """
    if nice:
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="ascii")
