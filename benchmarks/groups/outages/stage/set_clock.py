"""``python -m benchmarks.outages.set_clock FILE ARGUMENTS``: ``headroom`` with a wall clock that can be set.

The file has the seconds by which the clock of this process is off, and is read some ten times a second. Time that
passes evenly (``time.monotonic``) is left alone, as it is when somebody sets the clock of a machine. Processes that
this one starts, Spark's JVM among them, have the clock of the machine.

Debian's libfaketime (0.9.10) does not do: with its ``FAKETIME_DONT_FAKE_MONOTONIC`` every ``time.sleep`` of
Python 3.11 fails with EINVAL.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

_EVERY_S = 0.1
_real_time_ns = time.time_ns


class SetClock:
    """The wall clock of this process.

    Args:
        file: has the seconds by which it is off.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._off_ns = 0

    def install(self) -> None:
        """Let everything in this process have this clock from now on."""
        self.read_offset()
        time.time_ns = self.time_ns
        time.time = self.time
        threading.Thread(target=self._follow, name="set-clock", daemon=True).start()

    def time_ns(self) -> int:
        """Return the time as set, epoch nanoseconds."""
        return _real_time_ns() + self._off_ns

    def time(self) -> float:
        """Return the time as set, epoch seconds."""
        return self.time_ns() / 1e9

    def read_offset(self) -> None:
        """Read by how much the clock is off; a file that is not there or is being written changes nothing."""
        with suppress(OSError, ValueError):
            self._off_ns = round(float(self._file.read_text(encoding="utf-8")) * 1e9)

    def _follow(self) -> None:
        while True:
            time.sleep(_EVERY_S)
            self.read_offset()


def main() -> None:
    """Run ``headroom`` with this clock."""
    SetClock(Path(sys.argv[1])).install()
    # Only now, so that no module keeps the clock of before.
    from cli.main import run

    del sys.argv[1]
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
