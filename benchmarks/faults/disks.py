"""A separate file system for the tables of a watch, which can be filled and made read-only."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from benchmarks.groups.outages.scenarios.arrangement import Void

_SIZE = "256m"
# Smaller and smaller pieces, so that no free bytes are left.
_PIECES_BYTES = (1 << 20, 1 << 12, 1 << 8)
_FILL = "fill"
_TIMEOUT_S = 30.0


class OwnDisk:
    """A tmpfs.

    Args:
        mount_point: folder of the mount; created if missing.

    Attributes:
        store: folder for the tables.
    """

    def __init__(self, mount_point: Path) -> None:
        self.store = mount_point / "store"
        self._mount_point = mount_point
        self._is_read_only = False

    def mount(self) -> None:
        """Mount the file system.

        Raises:
            Void: this user may not mount, or there is no tmpfs.
        """
        self._mount_point.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "headroom-bench", str(self._mount_point))
        self.store.mkdir()

    def fill(self) -> None:
        """Fill the file system completely."""
        with (self._mount_point / _FILL).open("ab", buffering=0) as file:
            for piece_bytes in _PIECES_BYTES:
                with suppress(OSError):
                    # A write may be partial when the disk is almost full.
                    while file.write(bytes(piece_bytes)):
                        pass

    def empty(self) -> None:
        """Remove the filling."""
        (self._mount_point / _FILL).unlink(missing_ok=True)

    def turn_read_only(self) -> None:
        """Prevent all writes to files that are not open yet.

        A bind mount covers the folder, because the kernel does not make a mount read-only while files on it are open
        for writing, such as the locks of a watch.

        Raises:
            Void: this user may not mount.
        """
        _run("mount", "--bind", str(self.store), str(self.store))
        self._is_read_only = True
        _run("mount", "-o", "remount,bind,ro", str(self.store))

    def turn_writable(self) -> None:
        """Remove the read-only mount, if there is one."""
        if self._is_read_only:
            # A lazy unmount, so that running reads continue.
            _run("umount", "-l", str(self.store))
            self._is_read_only = False

    def close(self) -> None:
        """Unmount everything."""
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
