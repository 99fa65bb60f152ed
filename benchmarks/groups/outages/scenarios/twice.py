"""A second watch of the same store, and a second collector of the same cluster."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from benchmarks.faults.live_watch import ProcessName
from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Scenario

_ENDS_S = 30.0
# Exit code of a command that refuses to run.
_REFUSED = 1


@dataclass(frozen=True, kw_only=True)
class SecondInstance(Scenario):
    """A second instance is started. It has to exit on its own, and to name the first one.

    Attributes:
        process: process that is started twice.
        command: its command.
    """

    process: ProcessName
    command: str
    length_s: float = 2.0

    def begin(self, context: ScenarioContext) -> None:
        """Start the second instance, and check that it exits.

        Raises:
            HeadroomError: it keeps running, or does not name the first one.
        """
        first = context.live.collector().pid if self.process == "collector" else context.live.process().pid
        arguments = (self.command, "--config", str(context.live.config), "--with-parent")
        command = context.live.command(self.process, *arguments)
        environment = os.environ | context.live.environment
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_ENDS_S, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            raise failure(f"a second {self.process} still runs after {_ENDS_S:.0f} s") from None
        last_line = (done.stderr.strip().splitlines() or [""])[-1]
        context.note(f"the second one printed: {last_line}")
        if done.returncode != _REFUSED or f"pid {first} " not in done.stderr:
            raise failure(
                f"a second {self.process} ended with code {done.returncode} and did not name pid {first}: {last_line}"
            )


SCENARIOS: tuple[Scenario, ...] = (
    SecondInstance(name="second_watch", title="second watch of the same store", process="watch", command="watch"),
    SecondInstance(name="second_collector", title="second collector", process="collector", command="collect"),
)
