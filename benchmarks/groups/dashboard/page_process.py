"""The page of a benchmark as a process, and the browser that opens it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.fixtures.bench_cluster import failure
from headroom.cli.common.child_process import headroom_command


def chromium() -> str:
    """Return the path of an installed Chromium.

    Raises:
        HeadroomError: there is none.
    """
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise failure("there is no Chromium to open the page with")
    return browser


def start_page(
    config: Path, listen: str = "127.0.0.1:0", environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[str], str]:
    """Start ``headroom dashboard`` in a session of its own; return its process and address once it answers.

    Args:
        config: settings file.
        listen: address to listen on.
        environment: further variables.

    Raises:
        HeadroomError: it was not served.
    """
    process = subprocess.Popen(
        headroom_command("dashboard", "--config", str(config), "--listen", listen),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("Dashboard: "):
        process.terminate()
        process.wait()
        raise failure(f"the page was not served: {line.strip() or 'no line'}")
    return process, line.split()[1].rstrip("/")
