"""A stage without brokers and watch: leaders that starve make alerts, in a real table and as lines of a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deltalake import DeltaTable

from benchmarks.faults.leaders_in_turn import LeadersInTurn
from benchmarks.fixtures.receivers.notifications import Notifications
from benchmarks.groups.outages.blind import Span
from benchmarks.groups.outages.context import ScenarioContext
from headroom.alerts.delivery.delivery_log import event_key
from headroom.cli.common.watch_output import Line
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.delta import append as plain_table
from tests.unit.fakes.receivers import event


class FakeWatch:
    """Says each event on its terminal, keeps it in a table and shows it to receivers, unless it is to fail in that.

    Attributes:
        keeps: whether events are kept.
        notifies: how often receivers are notified of each event.
        ended: what ended by itself.
    """

    def __init__(self, store: Path) -> None:
        self.keeps = True
        self.notifies = 1
        self.ended: list[str] = []
        self.watch = SimpleNamespace(summary=lambda: "nothing")
        self._place = store / ALERT_EVENTS.path
        self._lines: list[Line] = []
        self._shown: dict[str, int] = {}
        plain_table.create(str(self._place), ALERT_EVENTS)

    def say(self, *events: AlertEvent) -> None:
        for one in events:
            said = {**asdict(one), "evidence": json.loads(one.evidence), "recommendation": {}}
            said["recommendation"] = json.loads(one.recommendation)
            self._lines.append(Line(time.monotonic(), {"type": "event", **said}))
            if one.state != "pending":
                self._shown[event_key(one)] = self.notifies
        if self.keeps:
            plain_table.append(DeltaTable(str(self._place)), events, ALERT_EVENTS)

    def lines(self) -> Iterator[Line]:
        yield from self._lines

    def shown(self) -> Mapping[str, Mapping[str, int]]:
        return {"webhook": {key: times for key, times in self._shown.items() if times}}

    def supervise(self) -> None:
        pass

    def start(self) -> None:
        pass


class FakeLeaders(LeadersInTurn):
    """Leaders whose alerts come at once.

    Args:
        watch: says them.

    Attributes:
        is_heard: whether alerts come at all.
        severity: of the alerts.
    """

    def __init__(self, watch: FakeWatch) -> None:
        super().__init__(Settings(), 1.0)
        self.is_heard = True
        self.severity = "critical"
        self._watch = watch
        self._tick_ms = 1_800_000_000_000

    def starve(self) -> None:
        self.starved += 1
        self._say("pending", "firing")

    def restore(self) -> None:
        self._say("resolved")

    def _say(self, *states: str) -> None:
        self._tick_ms += 1000
        common: dict[str, Any] = {"subject": self.subject, "severity": self.severity}
        if self.is_heard:
            self._watch.say(*(event(f"alert-{self.starved}", state, self._tick_ms, **common) for state in states))


class FakeBrokers:
    """Brokers, one of which may be down.

    Attributes:
        spans: times in which Kafka could take no tick.
        comes_back: whether all of them come back.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.comes_back = True

    def elect_preferred(self, topic: str, replicas: object) -> None:
        pass

    def repair(self) -> None:
        if not self.comes_back:
            raise HeadroomError("broker 1", "does not come back", "Wait.")

    def pop_spans(self) -> list[Span]:
        spans, self.spans = self.spans, []
        return spans


class FakeFreshness:
    """A fresh verdict whenever one is awaited.

    Attributes:
        moments: when one came.
    """

    def __init__(self) -> None:
        self.moments: list[float] = []

    def since(self, at_s: float) -> int:
        self.moments.append(time.monotonic())
        return 3


def fake_context(tmp_path: Path) -> ScenarioContext:
    """Return a stage whose alerts come as its leaders starve."""
    watch: Any = FakeWatch(tmp_path)
    collect = SimpleNamespace(interval_s=1.0)
    bench: Any = SimpleNamespace(settings=SimpleNamespace(collect=collect))
    receivers: Any = SimpleNamespace(shown=watch.shown, start=lambda: None)
    nothing: Any = None
    move: Any = SimpleNamespace(topic="t")
    fakes: dict[str, Any] = {"brokers": FakeBrokers(), "fresh": FakeFreshness(), "leaders": FakeLeaders(watch)}
    return ScenarioContext(
        bench=bench,
        move=move,
        live=watch,
        receivers=receivers,
        notifications=Notifications(str(tmp_path), watch, receivers),
        ticks=nothing,
        store=tmp_path,
        on_progress=lambda text: None,
        **fakes,
    )
