"""How much of the processors the processes of a session get that others want too."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def lower_session(pid: int, nice: int) -> None:
    """Let all processes of a session have less of the processors.

    Linux may share processors among sessions first (autogroups): within its own session alone does the nice value of a
    process count then. Where it does not, this changes nothing.

    Args:
        pid: of a process of the session.
        nice: 0 to 19; 0 changes nothing.
    """
    if nice:
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice), encoding="ascii")
