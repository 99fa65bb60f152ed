"""``python -m benchmarks.faults.set_clock FILE ARGUMENTS``: ``headroom`` with a settable wall clock.

The file has the offset of this process's clock in seconds, and is read ten times a second. ``time.monotonic`` is not
affected, as when the clock of a machine is set. Child processes, Spark's JVM included, have the clock of the machine.

Debian's libfaketime (0.9.10) is not usable: with its ``FAKETIME_DONT_FAKE_MONOTONIC`` every ``time.sleep`` of
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


class SettableClock:
    """Wall clock of this process.

    Args:
        file: file with the offset in seconds.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._off_ns = 0

    def install(self) -> None:
        """Replace the wall clock of this process."""
        self.read_offset()
        time.time_ns = self.time_ns
        time.time = self.time
        threading.Thread(target=self._follow, name="set-clock", daemon=True).start()

    def time_ns(self) -> int:
        """Return the set time, epoch nanoseconds."""
        return _real_time_ns() + self._off_ns

    def time(self) -> float:
        """Return the set time, epoch seconds."""
        return self.time_ns() / 1e9

    def read_offset(self) -> None:
        """Read the offset. A missing or incomplete file changes nothing."""
        with suppress(OSError, ValueError):
            self._off_ns = round(float(self._file.read_text(encoding="utf-8")) * 1e9)

    def _follow(self) -> None:
        while True:
            time.sleep(_EVERY_S)
            self.read_offset()


def main() -> None:
    """Run ``headroom`` with this clock."""
    SettableClock(Path(sys.argv[1])).install()
    # Imported after the installation, so that no module keeps the original clock.
    from headroom.cli.main import run

    del sys.argv[1]
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
