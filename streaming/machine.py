"""How busy the machine is that this process runs on."""

from __future__ import annotations

import os

from headroom.alerts.rules.no_ticks import Machine


def this_machine() -> Machine | None:
    """Return how busy this machine is; None where the system does not tell."""
    try:
        return Machine(os.getloadavg()[0], os.cpu_count() or 1)
    except OSError:
        return None
