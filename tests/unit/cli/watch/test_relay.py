"""Output that nobody reads: nothing that writes waits for it, and a reader that comes back learns what it missed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headroom.cli.watch.output.relay import LineQueue, Relay, dropped_json, dropped_text
from tests.support.waiting import until

# Writes far more than a pipe and the queue hold, on both descriptors and by a child process, and then creates a file.
FLOOD = """
import subprocess, sys, time
from pathlib import Path
from headroom.cli.common.output import echo
from headroom.cli.watch.output.relay import relayed_output
with relayed_output(sys.argv[1]):
    for n in range(15_000):
        echo(f"line {n} {'x' * 100}")
        echo(f"line {n} {'x' * 100}", err=True)
    subprocess.run([sys.executable, "-c", "print('y' * 200_000)"], stdout=sys.stderr.fileno(), check=True)
    Path(sys.argv[2]).touch()
    time.sleep(float(sys.argv[3]))
"""


def flood(out: int, written: Path, output_format: str = "text", lives_s: float = 0.0) -> subprocess.Popen[bytes]:
    """Start a process that writes megabytes, and then creates a file."""
    command = [sys.executable, "-c", FLOOD, output_format, str(written), str(lives_s)]
    return subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_a_writer_does_not_wait_for_a_pipe_that_is_not_read(pipe: tuple[int, int], tmp_path: Path) -> None:
    process = flood(pipe[1], tmp_path / "written")
    until((tmp_path / "written").exists, deadline_s=60.0)
    assert process.wait(30) == 0


def test_a_reader_that_comes_back_learns_how_many_lines_it_missed(pipe: tuple[int, int], tmp_path: Path) -> None:
    process = flood(pipe[1], tmp_path / "written", "json", lives_s=30)
    until((tmp_path / "written").exists, deadline_s=60.0)
    text = b""
    while b"line 14999 " not in text:
        text += os.read(pipe[0], 65_536)
    lines = text.decode().splitlines()
    (notice,) = (at for at, line in enumerate(lines) if line.startswith("{"))
    missed = json.loads(lines[notice])
    assert missed["type"] == "dropped"
    numbers = [int(line.split()[1]) for at, line in enumerate(lines) if at != notice]
    # The gap is where the notice is, and no line is torn or out of order.
    assert numbers == [*range(notice), *range(notice + missed["lines"], 15_000)]
    process.kill()
    process.wait()


def test_a_writer_continues_after_its_terminal_is_closed(tmp_path: Path) -> None:
    terminal, other_end = pty.openpty()
    process = flood(other_end, tmp_path / "written")
    os.close(other_end)
    os.close(terminal)
    assert process.wait(60) == 0
    assert (tmp_path / "written").exists()


def test_a_writer_continues_without_a_reader_of_its_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    process = flood(writing, tmp_path / "written")
    for end in (reading, writing):
        os.close(end)
    assert process.wait(60) == 0
    assert (tmp_path / "written").exists()


def test_a_file_on_a_full_disk_stops_nobody(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = flood(full.fileno(), tmp_path / "written")
        assert process.wait(60) == 0
    assert (tmp_path / "written").exists()


def test_output_is_complete_and_in_order_and_the_descriptor_is_restored(pipe: tuple[int, int]) -> None:
    fd = os.dup(pipe[1])
    relay = Relay(fd, dropped_text)
    os.write(fd, b"one\ntwo\nno end")
    relay.end(10)
    os.write(fd, b" of it\n")
    assert os.read(pipe[0], 100) == b"one\ntwo\nno end of it\n"
    os.close(fd)


def test_a_queue_keeps_the_newest_lines_and_counts_the_others() -> None:
    queue = LineQueue(most_bytes=10)
    for line in (b"1234\n", b"5678\n", b"9\n", b"0\n"):
        queue.put(line)
    assert queue.take() == (1, b"5678\n")
    # It could not be written either.
    queue.finish(2)
    assert queue.take() == (2, b"9\n")
    queue.finish()
    assert not queue.wait_empty(0)
    assert queue.take() == (0, b"0\n")
    queue.finish()
    assert queue.wait_empty(0)


def test_dropped_lines_are_reported_in_the_format_of_the_others() -> None:
    assert dropped_text(3) == "headroom: 3 line(s) before this one were dropped, because nobody read them"
    assert json.loads(dropped_json(3)) == {"schema_version": 1, "type": "dropped", "lines": 3}
