"""A second watch of the same store, and a second collector of the same cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.groups.outages.stage.stage import Stage
from benchmarks.groups.outages.watching.live import Who

_ENDS_S = 30.0
_REFUSED = 1


@dataclass(frozen=True, kw_only=True)
class Second(Scenario):
    """A second one is started; it has to end by itself, and to name the first.

    Attributes:
        who: of whom.
        arguments: of its command.
    """

    who: Who
    arguments: Sequence[str]
    length_s: float = 2.0

    def begin(self, stage: Stage) -> None:
        """Start the second one, and see that it ends.

        Raises:
            HeadroomError: it goes on, or does not name the first.
        """
        first = stage.live.collector().pid if self.who == "collector" else stage.live.process().pid
        command = stage.live.command(self.who, *self.arguments, *stage.live.config_arguments(), "--with-parent")
        environment = os.environ | stage.live.environment
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_ENDS_S, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            raise failure(f"a second {self.who} still runs after {_ENDS_S:.0f} s") from None
        said = (done.stderr.strip().splitlines() or [""])[-1]
        stage.note(f"the second one said: {said}")
        if done.returncode != _REFUSED or f"pid {first} " not in done.stderr:
            raise failure(f"a second {self.who} ended with code {done.returncode} and did not name pid {first}: {said}")


SCENARIOS: tuple[Scenario, ...] = (
    Second(name="second_watch", title="second watch of the same store", who="watch", arguments=("watch",)),
    Second(name="second_collector", title="second collector", who="collector", arguments=("collect",)),
)
