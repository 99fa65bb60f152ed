"""Sequence of the demo, from the first record to the resolution of the alert."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from headroom.alerts.stored_event import recommendation_of
from headroom.alerts.text.terminal import render_event
from headroom.cli.common.output import echo, echo_lines
from headroom.cli.common.progress import ProgressView
from headroom.cli.common.watch_output import Line
from headroom.cli.common.watch_process import WatchProcess
from headroom.cli.demo.outcome import ALERT_WITHIN_S, DemoOutcome, alert_failures
from headroom.cli.demo.scenario import (
    NEW_LEADER,
    OLD_LEADER,
    ORDERS,
    PARTITIONS,
    PAYMENTS,
    RECORD_BYTES,
    SWITCHING,
    THROTTLE_BYTES_PER_S,
    DemoKafka,
)
from headroom.cli.demo.steps import (
    STEP_TIMEOUT_S,
    SteadyTraffic,
    await_watch,
    history_is_written,
    moves_text,
    name_of,
    run_headroom,
)
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.schemas.alerts import AlertKind, Verdict
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import rate_text, size_text

# The rate window is 10 s. After this time every write rate is that of the live traffic alone.
_LIVE_BEFORE_S = 14.0
_HEALTHY = {
    (1, Role.LEADER.value): Verdict.CATCHING_UP.value,
    (2, Role.LEADER.value): Verdict.CATCHING_UP.value,
    (3, Role.FOLLOWER.value): Verdict.CATCHING_UP.value,
    (4, Role.LEADER.value): Verdict.CATCHING_UP.value,
    (1, Role.FOLLOWER.value): Verdict.CATCHING_UP.value,
}


class DemoRun:
    """The steps of the demo, in order.

    Args:
        kafka: requests to the cluster.
        watch: the running ``headroom watch``.
        progress: progress output.
        settings: settings of the cluster and the tables.
        config: the file of these settings.
    """

    def __init__(
        self, kafka: DemoKafka, watch: WatchProcess, progress: ProgressView, settings: Settings, config: Path
    ) -> None:
        self._kafka = kafka
        self._watch = watch
        self._progress = progress
        self._bootstrap_servers = settings.cluster.bootstrap_servers
        self._settings = settings
        self._config = config

    def play(self) -> DemoOutcome:
        """Run all steps and return the measurements.

        Raises:
            HeadroomError: a step did not complete in time.
        """
        self._write_history()
        rates = {p.key: p.live_bytes_per_s for p in PARTITIONS}
        with PacedProducer(self._bootstrap_servers, rates, RECORD_BYTES) as producer:
            self._await_steady_traffic(producer)
            self._start_moves()
            switched_s = self._switch_leader()
            alert = self._await_alert()
            applied_s = self._apply(alert)
            finished_s = self._await_finish(alert, applied_s)
            resolved = self._await_resolved(alert)
            self._clean_up()
        fired = [line.event for line in self._watch.firing_events()]
        times_s = (alert.at_s - switched_s, finished_s - applied_s, resolved.at_s - applied_s)
        return DemoOutcome(alert.event, *times_s, fired)

    def _write_history(self) -> None:
        total = sum(p.history_bytes for p in PARTITIONS)
        with self._progress.step(
            f"Starting headroom watch; writing {size_text(total)} of history to orders and payments"
        ):
            self._kafka.create_topics()
            rates = {p.key: p.history_bytes_per_s for p in PARTITIONS}
            with PacedProducer(self._bootstrap_servers, rates, RECORD_BYTES) as producer:
                self._watch.wait(lambda: history_is_written(producer), STEP_TIMEOUT_S, "the end of the history")
            self._watch.wait(lambda: self._watch.verdicts() is not None, STEP_TIMEOUT_S, "a first verdict")
        await_watch(self._watch, self._progress, self._settings)

    def _await_steady_traffic(self, producer: PacedProducer) -> None:
        live = ", ".join(f"{name_of(p.key)} {rate_text(p.live_bytes_per_s)}" for p in PARTITIONS)
        with self._progress.step(f"Live traffic: {live}"):
            awaited = "the traffic to keep its rate on this machine, which is too busy"
            steady = SteadyTraffic(producer, _LIVE_BEFORE_S)
            self._watch.wait(steady.is_reached, STEP_TIMEOUT_S, awaited)

    def _start_moves(self) -> None:
        with self._progress.step(f"Moving, throttled to {rate_text(THROTTLE_BYTES_PER_S)}: {moves_text()}"):
            self._kafka.start_moves()
            self._watch.wait(self._all_catch_up, STEP_TIMEOUT_S, "every broker to catch up")
        self._progress.print_line("headroom watch: every new replica catches up")
        with self._progress.step("Waiting for its warning about leader switches to come"):
            warning = self._watch.wait(
                lambda: self._watch.last_info(AlertKind.THROTTLE_AT_RISK),
                ALERT_WITHIN_S,
                "a warning of switches to come",
            )
        self._progress.print_line(f"It warns: {warning.fields['summary']}")

    def _all_catch_up(self) -> bool:
        return (self._watch.verdicts() or {}) == _HEALTHY

    def _switch_leader(self) -> float:
        """Elect the preferred leader, and return when the metadata first showed it, in monotonic seconds."""
        text = f"Preferred election: the leader of {name_of(SWITCHING)} switches from {OLD_LEADER} to {NEW_LEADER}"
        with self._progress.step(text):
            self._kafka.elect_preferred(*SWITCHING)
            self._watch.wait(
                lambda: self._kafka.leader(*SWITCHING) == NEW_LEADER, STEP_TIMEOUT_S, "the switch of the leader"
            )
            return time.monotonic()

    def _await_alert(self) -> Line:
        with self._progress.step("Waiting for the alert"):
            alert = self._watch.wait(
                self._watch.last_recommendation, ALERT_WITHIN_S, "an alert that recommends a throttle"
            )
        echo()
        echo_lines(render_event(alert.event), colour="red")
        echo()
        deviations = alert_failures(alert.event)
        if deviations:
            raise HeadroomError("demo", "; ".join(deviations), "See the alert above")
        return alert

    def _apply(self, alert: Line) -> float:
        """Run the alert's first command, and return when the throttle was in force, in monotonic seconds."""
        command = recommendation_of(alert.event).commands[0]
        with self._progress.step(f"$ {command}"):
            run_headroom(shlex.split(command)[1:])
            return time.monotonic()

    def _await_finish(self, alert: Line, applied_s: float) -> float:
        promised_s = recommendation_of(alert.event).finish.finish_s or STEP_TIMEOUT_S
        with self._progress.step("Waiting for the end of the move of orders"):

            def is_finished() -> bool:
                left_bytes, elapsed_s = self._kafka.missing_bytes(ORDERS), time.monotonic() - applied_s
                self._progress.note(
                    f"{size_text(left_bytes)} to copy; {elapsed_s:.0f} s of the promised {promised_s:.0f} s"
                )
                return not self._kafka.moving(ORDERS)

            self._watch.wait(is_finished, 2 * promised_s + 60, "the end of the move of orders", poll_s=0.5)
            return time.monotonic()

    def _await_resolved(self, alert: Line) -> Line:
        with self._progress.step("Every replica of orders is where it should be; waiting for the alert to resolve"):
            resolved = self._watch.wait(
                lambda: self._watch.resolving_event(alert.event.alert_id), STEP_TIMEOUT_S, "the end of the alert"
            )
        echo()
        echo_lines(render_event(resolved.event), colour="green")
        echo()
        return resolved

    def _clean_up(self) -> None:
        """Clear the throttles, which would otherwise slow ordinary replication after the move."""
        arguments = ["throttle", "clear", "--config", str(self._config), "--execute"]
        with self._progress.step(f"$ {shlex.join(['headroom', *arguments])}"):
            self._watch.wait(
                lambda: not self._kafka.moving(PAYMENTS), STEP_TIMEOUT_S, "the end of the move of payments"
            )
            run_headroom(arguments)
