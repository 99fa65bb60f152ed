"""How busy the machine was for a while; standard library only, Linux. Unknown values are None."""

import os
import time
from pathlib import Path


class MachineLoad:
    """Measures from its creation on.

    Args:
        proc: the folder of the kernel's figures.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._began = time.monotonic()
        self._busy_s, self._stalled_s = self._all_busy_s(), self._all_stalled_s()

    def figures(self) -> "dict[str, float | int | None]":
        """Return seconds, cores, and means since the creation: cores that worked, and the share of the time in which
        some program waited for a core.
        """
        elapsed_s = max(0.001, time.monotonic() - self._began)
        return {
            "seconds": round(elapsed_s, 1),
            "cores": os.cpu_count(),
            "busy_cores": _difference(self._all_busy_s(), self._busy_s, elapsed_s),
            "waiting_ratio": _difference(self._all_stalled_s(), self._stalled_s, elapsed_s),
        }

    def _all_busy_s(self) -> "float | None":
        """Return the time that all cores have worked since the machine started, in seconds."""
        try:
            words = (self._proc / "stat").read_text().split("\n", 1)[0].split()
            # user, nice, system, irq and softirq; idle and iowait are the fourth and fifth.
            return sum(int(words[i]) for i in (1, 2, 3, 6, 7)) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None

    def _all_stalled_s(self) -> "float | None":
        """Return the time in which some program waited for a core, in seconds; the kernel may not count it."""
        try:
            line = (self._proc / "pressure" / "cpu").read_text().split("\n", 1)[0]
            return int(line.rsplit("total=", 1)[1]) / 1e6
        except (OSError, ValueError, IndexError):
            return None


def _difference(now: "float | None", before: "float | None", elapsed_s: float) -> "float | None":
    return None if now is None or before is None else round((now - before) / elapsed_s, 2)
