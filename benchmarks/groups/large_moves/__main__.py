"""``python -m benchmarks.groups.large_moves``: run scenes, print their figures and store none."""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import Any

import click

from benchmarks.groups.large_moves.group import LargeMovesOptions, measure
from benchmarks.options.command import command
from benchmarks.options.replaced_variables import refuse_variables
from headroom.cli.common.output import print_table


def main(options: LargeMovesOptions) -> None:
    """Run the scenes, and print the figures."""
    refuse_variables(os.environ)
    # kafka-python logs every lost connection to a broker, and scenes kill brokers.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, _interrupt)
    began_s = time.monotonic()
    figures = measure(lambda text: click.echo(f"{time.monotonic() - began_s:7.1f} s  {text}"), options)
    print_table("", ("name", "value", "unit", "n"), [(f.name, f"{f.value:.3f}", f.unit, str(f.n)) for f in figures])


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    command("large_moves", LargeMovesOptions, main, "Run scenes, print their figures and store none.")()
