"""Two tests never get one port, in whatever processes they run."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import REPOSITORY
from tests.support.ports import own_port

OTHERS = "from tests.support import ports; ports._RANGE = range({0}, {0} + 2); print(ports.own_port())"


def test_a_port_that_another_process_has_is_skipped() -> None:
    port = own_port()
    code = OTHERS.format(port)
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(port + 1) or "is taken" in done.stderr


def test_one_process_gets_each_port_once() -> None:
    ports = [own_port() for _ in range(20)]
    assert len(set(ports)) == 20
