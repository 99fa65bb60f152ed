"""A shell for the lines of alerts, with Kafka's tools and ``headroom`` on its PATH."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import CHECKOUT
from headroom.cluster.java import jar_folder, java_command

# Main classes as in bin/ of Kafka 4.3.1.
_TOOLS = {
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
}
# A small heap and a quick start, because each line starts a JVM on a busy machine.
_JVM = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_TIMEOUT_S = 120.0
# Exit code of the command ``timeout``.
_TIMED_OUT = 124
_OUTPUT_CHARACTERS = 4_000


@dataclass(frozen=True)
class RanLine:
    """One line that was run.

    Attributes:
        line: line as printed in the alert.
        code: exit code.
        output: end of its output, standard output and error together.
        took_s: seconds until it ended.
    """

    line: str
    code: int
    output: str
    took_s: float


class Shell:
    """Runs lines in a folder that also has the tools.

    Args:
        folder: folder; created if missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        tools = folder / "bin"
        tools.mkdir(parents=True, exist_ok=True)
        for name, text in tool_scripts().items():
            (tools / name).write_text(text, encoding="utf-8")
            (tools / name).chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}

    def run(self, line: str) -> RanLine:
        """Run one line with ``sh`` and without input, and return its result."""
        began_s = time.monotonic()
        try:
            done = subprocess.run(
                ["sh", "-c", line],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as expired:
            code, output = _TIMED_OUT, f"not done after {expired.timeout:.0f} s"
        return RanLine(line, code, output[-_OUTPUT_CHARACTERS:], time.monotonic() - began_s)


def tool_scripts() -> dict[str, str]:
    """Return the text of each script by name: Kafka's tools from the jars, and ``headroom`` of this checkout."""
    classpath = shlex.quote(str(jar_folder("kafka") / "*"))
    java = f"exec {shlex.quote(java_command())} {_JVM} -cp {classpath}"
    headroom = f"PYTHONPATH={shlex.quote(str(CHECKOUT))} exec {shlex.quote(sys.executable)} -m headroom.cli.main"
    commands = {**{name: f"{java} {main}" for name, main in _TOOLS.items()}, "headroom": headroom}
    return {name: f'#!/bin/sh\n{command} "$@"\n' for name, command in commands.items()}
