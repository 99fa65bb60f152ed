"""Standard streams of a command: open, able to print every character, and outliving their readers where need be."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headroom.schemas.errors import HeadroomError

_NAMES = ("stdin", "stdout", "stderr")


def prepare_streams() -> None:
    """Open the standard streams that are closed, and let the others escape what their encoding does not have.

    Without one of them, the next file or connection that is opened would get its number, and what children print.
    """
    for fd, name in enumerate(_NAMES):
        try:
            os.fstat(fd)
        except OSError:
            # It gets the lowest number that is free, which is this one.
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="backslashreplace")


class _LastingFile(io.FileIO):
    """A file descriptor to which every write succeeds: what follows a failed one is dropped.

    Attributes:
        error: error of the failed write; None if there was none.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return len(data)


@contextmanager
def lasting_output() -> Iterator[None]:
    """Let the block run to its end although its output can no longer be written.

    A pipe breaks when its reader ends, as ``tee`` does at Ctrl-C and ``head`` after some lines; a terminal goes away,
    and a disk gets full. That must not end a change of a cluster half-way.

    Raises:
        HeadroomError: at the end of the block, standard output could not be written.
    """
    before = sys.stdout, sys.stderr
    files: list[_LastingFile] = []
    # Tests replace the streams by others without a file.
    with suppress(io.UnsupportedOperation):
        files = [_LastingFile(stream.fileno(), "wb", closefd=False) for stream in before]
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(file), stream.encoding, stream.errors, line_buffering=True)
            for file, stream in zip(files, before, strict=True)
        )
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before
    if files and files[0].error is not None:
        rule = f"could not be written ({files[0].error.strerror}); the command has run to its end without it"
        remedy = "See what it did: headroom throttle show, headroom reassignments and headroom reassign runs."
        raise HeadroomError("the output", rule, remedy)
