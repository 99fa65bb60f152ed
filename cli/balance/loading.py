"""The cluster whose balance is asked for: the running one, or a saved state."""

from __future__ import annotations

import sys
from pathlib import Path

from headroom.cli.common.logs import silence_clients
from headroom.cli.common.output import console
from headroom.cli.common.progress import ProgressView
from headroom.cli.config.load import load_settings, read_settings
from headroom.operations.balance.cluster import BalanceCluster, running_cluster, saved_cluster


def load_cluster(config: str | None, state_file: Path | None) -> BalanceCluster:
    """Return the cluster of a saved state, or the running one of the settings.

    Args:
        config: settings file; the default one if None.
        state_file: saved state; None: read the running cluster.

    Raises:
        HeadroomError: the cluster or the file cannot be read, or has no partition.
    """
    if state_file is not None:
        return saved_cluster(read_settings(config), state_file)
    settings = load_settings(config)
    silence_clients()
    return running_cluster(settings, ProgressView(console(sys.stderr)))
