"""A file system of its own for the tables of a watch: it can be full, and it can turn read-only."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from benchmarks.groups.outages.scenarios.arrangement import Void

_SIZE = "256m"
_PIECES_BYTES = (1 << 20, 1 << 12, 1 << 8)
_FILL = "fill"
_TIMEOUT_S = 30.0


class OwnDisk:
    """A tmpfs.

    Args:
        mount_point: where it is mounted; made if it is not there.

    Attributes:
        store: the folder for the tables.
    """

    def __init__(self, mount_point: Path) -> None:
        self.store = mount_point / "store"
        self._mount_point = mount_point
        self._is_read_only = False

    def mount(self) -> None:
        """Mount it.

        Raises:
            Void: this user may not, or there is no tmpfs.
        """
        self._mount_point.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "headroom-bench", str(self._mount_point))
        self.store.mkdir()

    def fill(self) -> None:
        """Leave no room on it."""
        with (self._mount_point / _FILL).open("ab", buffering=0) as file:
            for piece_bytes in _PIECES_BYTES:
                with suppress(OSError):
                    # A write that finds room for a part of a piece takes that part.
                    while file.write(bytes(piece_bytes)):
                        pass

    def empty(self) -> None:
        """Give the room back that was filled."""
        (self._mount_point / _FILL).unlink(missing_ok=True)

    def turn_read_only(self) -> None:
        """Let nothing be written that is not open by now.

        By a mount in front of this one: the kernel makes none read-only that a process has a file open on to write, as
        a watch has its locks.

        Raises:
            Void: this user may not.
        """
        _run("mount", "--bind", str(self.store), str(self.store))
        self._is_read_only = True
        _run("mount", "-o", "remount,bind,ro", str(self.store))

    def turn_writable(self) -> None:
        """Undo that, if it was done."""
        if self._is_read_only:
            # Lazily: who reads just now goes on.
            _run("umount", "-l", str(self.store))
            self._is_read_only = False

    def close(self) -> None:
        """Unmount it, and what is mounted in front of it."""
        with suppress(Void):
            self.turn_writable()
            _run("umount", "-l", str(self._mount_point))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Void(f"`{' '.join(command)}` cannot be run: {error}") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise Void(f"`{' '.join(command)}` needs root, and the right to mount: {reason}")
