"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from headroom.schemas.environment import is_setting

# Variables of the shell that would lead tests elsewhere: settings of Headroom, which override those of a test's file,
# so that its commands would change the cluster of whoever runs it; another Spark than the one that is installed.
_ELSEWHERE = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS")
for _name in [name for name in os.environ if is_setting(name) or name in _ELSEWHERE]:
    del os.environ[_name]

# All servers of tests are on this machine, where no proxy of the environment is to look for them.
_LOOPBACK = "127.0.0.1,localhost,::1,[::1]"
_direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = f"{_direct},{_LOOPBACK}" if _direct else _LOOPBACK

# Tests act as another user, who has to get to their files.
os.umask(0o022)

# A slow or busy machine is no failure: speed is measured in benchmarks/. The examples are the same in every run, so
# that a change fails on what it changed; others are looked for with --hypothesis-profile=explore.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("same")


class FailuresAtOnce:
    """Prints a failed test, and a module that cannot be imported, when it fails, not only at the end of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print one line with the reason."""
        if report.failed:
            # A process of several that has crashed, or was ended because its test hangs, reports no step.
            step = report.when if report.when in ("setup", "call", "teardown") else "process"
            self._print(f"{step} of {report.nodeid}", report.longreprtext)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Print one line with the reason."""
        if report.failed:
            self._print(f"collection of {report.nodeid}", report.longreprtext)

    def _print(self, what: str, text: str) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            lines = text.strip().splitlines() or ["no reason"]
            reason = next((line[1:].strip() for line in lines if line.startswith("E ")), lines[-1])
            terminal.ensure_newline()
            terminal.write_line(f"FAILED in {what}: {reason}", red=True)


class NotRun:
    """Fails a run in which a collected test was not run, as when several workers have crashed: it could end green."""

    def __init__(self) -> None:
        self._collected: dict[str, None] = {}
        self._reported: set[str] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Keep what a worker has collected."""
        self._collected.update(dict.fromkeys(ids))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what this process has collected; it collects nothing if there are workers."""
        self._collected.update(dict.fromkeys(item.nodeid for item in session.items))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that has run."""
        self._reported.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Report the first test that was not run as failed, with how many others there are."""
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        # --collect-only, or told to end at the first failure.
        if session.config.option.collectonly or session.shouldstop or session.shouldfail:
            return
        left = [test for test in self._collected if test not in self._reported]
        if left:
            file, reason = left[0].partition("::")[0], "collected and not run"
            if len(left) > 1:
                reason += f", nor were {len(left) - 1} more"
            report = pytest.TestReport(left[0], (file, None, file), {}, "failed", reason, "call")
            session.config.hook.pytest_runtest_logreport(report=report)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--hypothesis-profile", None) in (None, "same"):
        # Hypothesis draws some values from the constants of the project's modules that are imported so far. Which these
        # are depends on the tests before, so that examples would change with their order. This set stays empty. A
        # Hypothesis that has no such function fails here.
        pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: providers._local_constants)
    # With several workers, only the process that prints has reports of all.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config), "failures-at-once")
        config.pluginmanager.register(NotRun(), "not-run")
