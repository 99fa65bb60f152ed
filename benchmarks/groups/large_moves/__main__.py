"""``python -m benchmarks.groups.large_moves``: run the scenes of BENCH_SCENES, print their figures and store none."""

from __future__ import annotations

import logging
import signal
import time
from typing import Any

import click

from benchmarks.groups.large_moves.group import measure
from cli.common.output import print_table


def main() -> None:
    """Run the scenes, and print the figures."""
    # kafka-python logs every lost connection to a broker, and scenes kill brokers.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, _interrupt)
    began_s = time.monotonic()
    found = measure(lambda text: click.echo(f"{time.monotonic() - began_s:7.1f} s  {text}"))
    print_table("", ("name", "value", "unit", "n"), [(f.name, f"{f.value:.3f}", f.unit, str(f.n)) for f in found])


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
