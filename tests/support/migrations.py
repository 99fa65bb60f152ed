"""What tests of migrations share: the command, settings of both clusters, and clients of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks.fixtures.migrations.clients import agreement_reader
from headroom.cli.main import headroom
from headroom.cluster.embedded import EmbeddedCluster
from headroom.routing.agreement import AgreementReader


def run(*words: str) -> Result:
    """Run ``headroom migration`` with these words."""
    return CliRunner().invoke(headroom, ["migration", *words])


def run_with(config: Path, *words: str) -> Result:
    """Run it with a settings file."""
    return run(*words, "--config", str(config))


def printed_with(config: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Return the JSON that it prints, and check its exit code."""
    ran = run_with(config, *words, "--format", "json")
    assert ran.exit_code == code, (words, ran.output, ran.exception)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def set_both_clusters(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    """Name both clusters in the environment, and more settings."""
    for name, value in {
        "CLUSTER__BOOTSTRAP_SERVERS": "new1:9092",
        "CLUSTER__NAME": "new",
        "MIGRATION__ORIGIN__BOOTSTRAP_SERVERS": "old1:9092",
        "MIGRATION__ORIGIN__NAME": "old",
        **more,
    }.items():
        monkeypatch.setenv(f"HEADROOM_{name}", value)


def agreement_reader_of(target: EmbeddedCluster) -> AgreementReader:
    """Return a reader of the agreement topic of a real target."""
    return agreement_reader(target.bootstrap_servers)
