"""File systems for the tables of a watch that can be filled, made read-only, or cut from power."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.fixtures.bench_cluster import failure
from headroom.schemas.errors import HeadroomError

_TMPFS_SIZE = "256m"
# Smaller and smaller pieces, so that no free bytes are left.
_PIECES_BYTES = (1 << 20, 1 << 12, 1 << 8)
_FILL = "fill"
_EXT4_BYTES = 2 << 30
# linux/fs/ext4: EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32); 2 is EXT4_GOING_FLAGS_NOLOGFLUSH.
_SHUTDOWN, _WITHOUT_FLUSH = 0x8004587D, 2
# With the first options names reach the disk within a second, and the content of a new file up to 30 s later: such a
# file comes back empty. The others are those of most systems.
OPTIONS = ("loop,commit=1,noauto_da_alloc", "loop")
_CONTROL = "unsynced"
_CONTROL_TEXT = "not on the disk"
_TIMEOUT_S, _FREE_S, _POLL_S = 60.0, 30.0, 0.2


class Void(HeadroomError):
    """This machine cannot provide what a fault needs.

    Args:
        rule: the reason.
    """

    def __init__(self, rule: str) -> None:
        super().__init__("benchmark", rule, "Run it as root, on a machine that allows it.")


class OwnDisk:
    """A tmpfs, which can be filled and made read-only.

    Args:
        mount_point: folder of the mount; created if missing.

    Attributes:
        store: folder for the tables.
    """

    def __init__(self, mount_point: Path) -> None:
        self.store = mount_point / "store"
        self._mount_point = mount_point
        self._is_read_only = False

    def __enter__(self) -> OwnDisk:
        """Mount the file system, and return it.

        Raises:
            Void: this user may not mount, or there is no tmpfs.
        """
        self._mount_point.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={_TMPFS_SIZE}", "headroom-bench", str(self._mount_point))
        self.store.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        """Unmount everything."""
        with suppress(Void):
            self.turn_writable()
            _run("umount", "-l", str(self._mount_point))

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


class CutDisk:
    """A disk whose power can be cut: what no process has synced is then lost, unless the kernel has written it already.

    It is an ext4 file system in a file. The cut is ext4's own shutdown without a flush of its journal, with which the
    tests of Linux file systems simulate a power cut: from then on nothing reaches the disk.

    Args:
        folder: folder of the file and of the mount.

    Attributes:
        store: folder for the tables.
    """

    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self._mount_point = folder / "disk"
        self.store = self._mount_point / "store"
        self._is_mounted = False

    def make(self) -> None:
        """Make the file system, and mount it.

        Raises:
            Void: this user may not mount, or the kernel or a tool is missing.
        """
        with self._image.open("wb") as file:
            file.truncate(_EXT4_BYTES)
        self._mount_point.mkdir()
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self.mount(OPTIONS[0])
        self.store.mkdir()

    def mount(self, options: str) -> None:
        """Mount the disk, as after the return of the power.

        Args:
            options: options of the mount.

        Raises:
            Void: it cannot be mounted.
        """
        _run("mount", "-o", options, str(self._image), str(self._mount_point))
        self._is_mounted = True

    def write_control(self) -> None:
        """Write a file that is not synced, by which ``lost_control`` recognizes a cut."""
        draft = self._mount_point / f"{_CONTROL}.tmp"
        draft.write_text(_CONTROL_TEXT, encoding="utf-8")
        draft.rename(self._mount_point / _CONTROL)

    def cut(self) -> float:
        """Cut the power, and return the time, seconds of the monotonic clock.

        Raises:
            HeadroomError: this kernel or user cannot do that.
        """
        # Otherwise the folder would be on a disk of the machine.
        if not os.path.ismount(self._mount_point):
            raise failure(f"{self._mount_point} is not mounted")
        descriptor = os.open(self._mount_point, os.O_RDONLY)
        try:
            at_s = time.monotonic()
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        except OSError as error:
            raise failure(
                f"the power of an ext4 file system cannot be cut here ({error.strerror}): needs root"
            ) from None
        finally:
            os.close(descriptor)
        return at_s

    def unmount(self) -> None:
        """Unmount the disk, once its processes have ended.

        Raises:
            Void: a process still uses it.
        """
        until_s = time.monotonic() + _FREE_S
        while True:
            try:
                _run("umount", str(self._mount_point))
            except Void:
                if time.monotonic() > until_s:
                    raise
                time.sleep(_POLL_S)
            else:
                self._is_mounted = False
                return

    def lost_control(self) -> bool:
        """Return whether the file that was not synced is gone or has lost its content, and remove it."""
        file = self._mount_point / _CONTROL
        with suppress(FileNotFoundError):
            content = file.read_bytes()
            file.unlink()
            return content != _CONTROL_TEXT.encode()
        return True

    def emptied_files(self) -> int:
        """Return the number of files of tables and checkpoints that came back empty. Locks are empty by themselves."""
        files = (Path(place) / name for place, _, names in os.walk(self.store) for name in names)
        return sum(not file.stat().st_size for file in files if file.suffix != ".lock")

    def close(self) -> None:
        """Unmount the disk, and remove its file."""
        if self._is_mounted:
            with suppress(Void):
                # A lazy unmount, so that nothing stays mounted whoever still uses it.
                _run("umount", "-l", str(self._mount_point))
        self._image.unlink(missing_ok=True)


def _run(*command: str) -> None:
    """Run a command of the system.

    Raises:
        Void: it failed, or there is no such command.
    """
    name = " ".join(command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Void(f"`{name}` cannot be run: {error}") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise Void(f"`{name}` failed; it needs root, and the right to mount: {reason}")
