"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A slow or busy machine is no failure: speed is measured in benchmarks/. The examples are the same in every run, so
# that a change fails on what it changed; others are looked for with --hypothesis-profile=explore.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("same")


class FailuresAtOnce:
    """Prints a failed test when it fails, not only at the end of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print one line with the reason."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            lines = report.longreprtext.strip().splitlines() or ["no reason"]
            reason = next((line[1:].strip() for line in lines if line.startswith("E ")), lines[-1])
            terminal.ensure_newline()
            terminal.write_line(f"FAILED in {report.when} of {report.nodeid}: {reason}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    # With several workers, only the process that prints has reports of all.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config), "failures-at-once")
