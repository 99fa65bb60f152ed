"""Standard output and error that never block: a thread passes on what is written, and drops what nobody reads.

A terminal stopped by Ctrl-S, a pager or a full pipe blocks whoever writes to it, without limit. The two file
descriptors are replaced, so this also holds for Spark's JVM and for child processes, which inherit them.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from headroom.cli.common.output import with_schema_version

STDOUT, STDERR = 1, 2
# What a reader that is stuck for hours finds when it reads again: some thousand lines.
_QUEUE_BYTES = 1 << 20
_READ_BYTES = 65_536
# Longest wait at the end of a command for a reader to take the last lines.
_DRAIN_S = 2.0
_POLL_S = 0.5

Notice = Callable[[int], str]


def dropped_text(lines: int) -> str:
    """Return the line that reports dropped lines, as text."""
    return f"headroom: {lines} line(s) before this one were dropped, because nobody read them"


def dropped_json(lines: int) -> str:
    """Return the line that reports dropped lines, as JSON."""
    return json.dumps(with_schema_version({"type": "dropped", "lines": lines}))


class LineQueue:
    """Lines that wait for a reader. If they are too many, the oldest are dropped and counted.

    Args:
        most_bytes: bound, in bytes.
    """

    def __init__(self, most_bytes: int = _QUEUE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._unfinished = 0
        self._changed = threading.Condition()

    def put(self, line: bytes) -> None:
        """Append a line and return at once."""
        with self._changed:
            self._lines.append(line)
            self._waiting_bytes += len(line)
            while self._waiting_bytes > self._most_bytes:
                self._waiting_bytes -= len(self._lines.popleft())
                self._dropped += 1
            self._changed.notify_all()

    def take(self) -> tuple[int, bytes]:
        """Wait for the next line, and return it after the number of lines that were dropped before it."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines)
            line = self._lines.popleft()
            self._waiting_bytes -= len(line)
            dropped, self._dropped = self._dropped, 0
            self._unfinished = 1
            return dropped, line

    def finish(self, dropped: int = 0) -> None:
        """Note that the line taken was written or dropped.

        Args:
            dropped: number of lines to count as dropped, this one among them.
        """
        with self._changed:
            self._unfinished = 0
            self._dropped += dropped
            self._changed.notify_all()

    def wait_empty(self, seconds: float) -> bool:
        """Return whether all lines were written or dropped within some seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._unfinished, seconds)


class Relay:
    """Takes over a file descriptor: what is written to it goes to its former file by way of a queue.

    Args:
        fd: the file descriptor.
        notice: returns the line that reports a number of dropped lines.
        queue: lines that wait for the reader.
    """

    def __init__(self, fd: int, notice: Notice, queue: LineQueue | None = None) -> None:
        self._fd = fd
        self._notice = notice
        self._queue = queue or LineQueue()
        self._target = os.dup(fd)
        self._source, writing = os.pipe()
        os.set_blocking(self._source, False)
        os.dup2(writing, fd)
        os.close(writing)
        self._reading = threading.Lock()
        self._rest = b""
        for call in (self._pump, self._write):
            threading.Thread(target=call, name=f"output {fd}", daemon=True).start()

    def end(self, seconds: float) -> None:
        """Give the file descriptor back once all lines were passed on; if nobody reads them in time, keep it."""
        self._read_available(and_rest=True)
        if self._queue.wait_empty(seconds):
            os.dup2(self._target, self._fd)

    def _pump(self) -> None:
        while True:
            select.select([self._source], [], [])
            if not self._read_available():
                return

    def _read_available(self, *, and_rest: bool = False) -> bool:
        """Queue the lines that were written; return whether more may come.

        Args:
            and_rest: also queue the beginning of a line.
        """
        with self._reading:
            is_open = True
            with suppress(BlockingIOError):
                while chunk := os.read(self._source, _READ_BYTES):
                    self._split(chunk)
                is_open = False
            if self._rest and (and_rest or not is_open):
                self._queue.put(self._rest)
                self._rest = b""
            return is_open

    def _split(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._queue.put(line + b"\n")
        # A line without an end must not fill the memory.
        if len(self._rest) > _QUEUE_BYTES:
            self._queue.put(self._rest)
            self._rest = b""

    def _write(self) -> None:
        while True:
            dropped, line = self._queue.take()
            try:
                if dropped:
                    _write_all(self._target, f"{self._notice(dropped)}\n".encode())
                    dropped = 0
                _write_all(self._target, line)
            # Nobody reads any more (EIO, EPIPE), or the disk of a file is full.
            except OSError:
                self._queue.finish(dropped + 1)
            else:
                self._queue.finish()


def _write_all(fd: int, text: bytes) -> None:
    while text:
        try:
            text = text[os.write(fd, text) :]
        except BlockingIOError:
            # Another program has set it to non-blocking.
            select.select([], [fd], [], _POLL_S)


@contextmanager
def relayed_output(output_format: str = "text", *, stdout: bool = True) -> Iterator[None]:
    """Relay standard error, and standard output, in the block.

    Args:
        output_format: format of standard output, text or json, also for the line that reports dropped lines.
        stdout: whether standard output is relayed. A result that is read by another program must not be dropped.
    """
    notices: dict[int, Notice] = {STDERR: dropped_text}
    if stdout:
        notices[STDOUT] = dropped_json if output_format == "json" else dropped_text
    relays = []
    for fd, notice in notices.items():
        # The command may have been started without one of them.
        with suppress(OSError):
            relays.append(Relay(fd, notice))
    try:
        yield
    finally:
        end_s = time.monotonic() + _DRAIN_S
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        for relay in relays:
            relay.end(max(0.0, end_s - time.monotonic()))
