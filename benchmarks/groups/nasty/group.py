"""Group ``nasty``: on large and nasty moves, is every alert true, every fault announced once, and all advice right?

Scenes on four real brokers, one after another, each with a fresh `headroom watch` at one tick a second. Numbers are
drawn with a fixed seed. A scene knows what is true of it: its causes, what an alert may say of each, and the numbers
counted by hand. An alert of severity warning or critical is true if everything by which it pages is about a cause of
that moment and its numbers are right; otherwise it is false. A cause is seen if an alert, a new one or an update of an
active one, announces it in time. A scene in which what was to be true did not happen is played once more; if that fails
too, it does not count, and `nasty_scenes_void` does.

| scenes (BENCH_SCENES) | what happens |
|---|---|
| `large` | healthy moves of 240 and 600 partitions at a low and at a high throttle |
| `short` | 60 partitions on one leader, whose throttle starves or loses |
| `death`, `destination` | a leader or a destination is killed in a move of 120 to 140 partitions |
| `restart_before` | a rolling restart, then a move whose throttle is too low |
| `restart_during` | a rolling restart during a healthy move |
| `uneven` | rates that differ between brokers and roles, one of them too low; they are left behind at the end |
| `near` | rates 4 to 8 % off in-sync use or required; whether the lag then grew or fell decides what is true |
| `growing` | one replica is lost, later its broker with hundreds |
| `directories` | replicas move between log directories of a broker meanwhile |
| `leaderless` | one partition has no leader, and the throttle of 60 others is too low |

**Figures.** `alert_precision_large` is the share of alerts that are true, `alert_recall_large` the share of causes that
are seen. Their `n` are alerts and causes, those of `alert_precision` and `alert_recall` in the group `precision` alerts
and faults; both groups together have the mean weighted by `n`. `alert_causes_doubled` counts alerts beyond the first of
each cause.

**Advice** is followed when a scene has shown what it is to show, for every alert that then fires and has commands,
infos too: on the first, third, ... occurrence of a kind its first command, on the others Kafka's own lines. A shell
runs them as printed. `advice_runs_ratio` is the share of lines that exit with 0. `advice_resolves_ratio` is the share
of alerts that resolve within `alerts.resolve_s` (5 s), one tick and the window of a quota (11 s) from the end of the
last line. What only a person can do (start a broker, repair a directory) the scene does, and the time runs from when
Kafka shows the replicas in sync again. `advice_lowered` counts the rates (broker and role) that were lower after
following advice than before, read from the brokers; a rate where there was none is lower. `numbers_wrong` counts rows
of `gold/throttle_headroom` that are off by more than 20 % (required) or 30 % (remaining) in the scenes `directories`.

A run may be made in parts: BENCH_SCENES names classes or single scenes (`large,near:2`), BENCH_SCENES_EACH the number
of scenes of each class. Everything that happened in a scene is left in `benchmarks/parts/nasty`; scenes of the same
code (the product's and its own) count together, and one that has counted is not played again. `python -m
benchmarks.groups.nasty` plays without keeping the figures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import Ground, Say
from benchmarks.groups.nasty.record import Outcome, is_kept, keep, kept, outcome, print_outcomes, problems
from benchmarks.groups.nasty.scenes.base import BROKERS, NastyScene
from benchmarks.groups.nasty.schedule import schedule
from benchmarks.groups.nasty.scoring.advice import Turns
from benchmarks.groups.nasty.stage.damage import Damage
from benchmarks.groups.nasty.stage.shell import Shell
from benchmarks.groups.nasty.stage.stage import Stage, Tools
from benchmarks.groups.nasty.stage.topic import LargeTopic
from benchmarks.results import Figure, parts
from cli.common.watch_process import WatchProcess
from cluster.embedded import BrokerOptions
from schemas.errors import HeadroomError

# As in the group ``precision``: shorter than the defaults, so that a scene of two minutes is long enough.
_ALERTS = {"stalled_s": 15.0, "under_replicated_s": 20.0, "left_behind_s": 20.0}
# Deleted partitions leave their disk at once: a run writes some hundred thousand of them.
_PROPERTIES = {"log.segment.delete.delay.ms": "1000"}
_FIRST_VERDICT_S = 240.0
# A write rate is a mean over 10 s of the load alone, and takes a sample from before that.
_STEADY_S = 14.0
_ATTEMPTS = 2
_REASON_CHARACTERS = 500


def measure(say: Say) -> list[Figure]:
    """Return the figures over the scenes of BENCH_SCENES (default: all), BENCH_SCENES_EACH of each class.

    Raises:
        HeadroomError: no such scene, or the brokers could not be brought back to where a scene begins.
    """
    each = os.environ.get("BENCH_SCENES_EACH")
    wanted = schedule(os.environ.get("BENCH_SCENES", ""), int(each) if each else None)
    scenes = [scene for scene in wanted if not is_kept(scene, _folder(scene))]
    outcomes: list[Outcome] = []
    with Ground(BROKERS, BrokerOptions(properties=_PROPERTIES), second_log_dir=True) as ground:
        ground.add_section("alerts", _ALERTS)
        tools = Tools(ground, Damage(ground), Shell(ground.folder / "shell"), Turns(), say)
        _place_ticks(ground)
        for scene in scenes:
            outcomes.append(_play(tools, scene))
            keep(outcomes[-1], _folder(scene))
    print_outcomes(outcomes)
    return figures([record for scene in schedule() if (record := kept(scene, _folder(scene))) is not None])


def figures(records: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Return the figures of scenes; those that are void count as scenes alone, and of nothing there is no ratio.

    Args:
        records: of ``benchmarks.groups.nasty.record``.
    """
    real = [one for one in records if one["void"] is None]
    alerts = [alert for one in real for alert in one["alerts"]]
    causes = [cause for one in real for cause in one["causes"] if cause["required"]]
    followed = [advice for one in real for advice in one["advice"]]
    lines = [line for advice in followed for line in advice["lines"]]
    checked = sum(one["checked_numbers"] for one in real)
    ratios = (
        ("alert_precision_large", sum(alert["wrong"] is None for alert in alerts), len(alerts)),
        ("alert_recall_large", sum(not cause["missing"] for cause in causes), len(causes)),
        ("advice_runs_ratio", sum(line["code"] == 0 for line in lines), len(lines)),
        ("advice_resolves_ratio", sum(advice["resolves"] for advice in followed), len(followed)),
    )
    doubled = sum(alert["doubled"] for alert in alerts)
    lowered = sum(len(advice["lowered"]) for advice in followed)
    return [
        *(Figure(name, good / count, "ratio", count) for name, good, count in ratios if count),
        Figure("alert_causes_doubled", doubled, "alerts", len(causes)),
        Figure("advice_lowered", lowered, "rates", len(followed)),
        Figure("numbers_wrong", sum(len(one["wrong_numbers"]) for one in real), "numbers", checked),
        Figure("nasty_scenes", len(real), "scenes", len(records)),
        Figure("nasty_scenes_void", len(records) - len(real), "scenes", len(records)),
    ]


def _folder(scene: NastyScene) -> Path:
    """Return where what happened in a scene is kept: under the name of its own code, whatever becomes of others'."""
    return parts("nasty", __name__, type(scene).__module__, without=schedule.__module__)


def _place_ticks(ground: Ground) -> None:
    """Keep the ticks out of the second log directories, which scenes take away."""
    ticks = ground.settings.ticks
    places = {(ticks.topic, n, b): str(ground.log_dir(b)) for n in range(ticks.partitions) for b in ground.brokers}
    ground.admin.alter_replica_log_dirs(places)


def _play(tools: Tools, scene: NastyScene) -> Outcome:
    """Return a scene as it went, played once more if it went otherwise than it should have."""
    for attempt in range(_ATTEMPTS):
        tools.say(f"{scene.name}: {scene.title}{', once more' if attempt else ''}")
        played = _played(tools, scene, attempt)
        for problem in problems(played):
            tools.say(f"    {problem}")
        if played.void is None:
            break
    return played


def _played(tools: Tools, scene: NastyScene, attempt: int) -> Outcome:
    """Return a scene as it went; afterwards all brokers are up, nothing moves, and no throttle is left."""
    name = f"{scene.key.replace('_', '-')}-{scene.number}-{attempt}"
    store = tools.ground.folder / f"store-{name}"
    topic = LargeTopic(
        tools.ground, name, scene.groups(), scene.sizes_draw(), tools.damage.down, scene.log_dirs(tools.ground)
    )
    with tools.ground.watch(store) as watch, topic:
        stage = Stage(tools, watch, store, topic)
        try:
            void = _story(scene, stage)
            return outcome(scene, stage, void)
        finally:
            _end(watch)
            tools.damage.repair()


def _story(scene: NastyScene, stage: Stage) -> str | None:
    """Play a scene, and return why it does not count; None if it does."""
    try:
        _await_steady(stage.watch)
        stage.began_s = time.monotonic()
        scene.play(stage)
    except (HeadroomError, KafkaError) as error:
        return str(error)[:_REASON_CHARACTERS]
    return None


def _end(watch: WatchProcess) -> None:
    """Kill a watch with all its processes: nobody reads its tables any more."""
    for process in watch.processes():
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _await_steady(watch: WatchProcess) -> None:
    """Return when the watch has judged a tick, and write rates are known."""
    watch.wait(lambda: watch.verdicts() is not None, _FIRST_VERDICT_S, "the first verdicts")
    until_s = time.monotonic() + _STEADY_S
    while time.monotonic() < until_s:
        watch.require_running()
        time.sleep(0.5)
