"""Group ``large_moves``: large and difficult moves. Is every alert true and announced once, and does its advice work?

Scenes run on four real brokers, one after another, each with a fresh `headroom watch` at one tick a second. Their
numbers come from a fixed random seed. Each scene defines its causes (faults), the alerts that may be about each cause,
and the right numbers, computed by hand.

- An alert of severity warning or critical is true if each of its announcements is about a cause of that time and has
  the right numbers. Otherwise it is false.
- A cause is detected if an alert announces it in time, with a new alert or an update of an active one.
- A scene is void if its fault did not happen as planned. It runs once more. If it is void again, it counts only in
  `nasty_scenes_void`.

| scenes (`--scenes`) | fault |
|---|---|
| `large` | none: healthy moves of 240 and 600 partitions at a low and at a high throttle |
| `short` | 60 partitions on one leader, whose throttle starves or loses |
| `death`, `destination` | a leader or a destination is killed in a move of 120 to 140 partitions |
| `restart_before` | a rolling restart, then a move whose throttle is too low |
| `restart_during` | a rolling restart during a healthy move |
| `uneven` | rates differ between brokers and roles and one is too low; they are left behind at the end |
| `near` | rates 4 to 8 % off in-sync use or the required rate; the measured lag decides which alerts are true |
| `growing` | one replica gets out of sync, later its broker dies with hundreds of replicas |
| `directories` | replicas move between log directories of a broker during the move |
| `leaderless` | one partition has no leader, and the throttle of 60 others is too low |

**Alerts.** `alert_precision_large` is the share of true alerts, `alert_recall_large` the share of detected causes.
Their `n` are alerts and causes. For a mean with the group `precision`, weight both groups by `n`.
`alert_causes_doubled` counts alerts beyond the first of each cause.

**Advice.** When a scene has shown its fault, a shell runs the commands of every firing alert, infos included, as
printed. Headroom's own command (the first one) and Kafka's commands (the others) take turns per kind of alert. The
scene itself does what an operator must do by hand (start a broker, repair a directory).

- `advice_runs_ratio`: share of command lines with exit code 0.
- `advice_resolves_ratio`: share of alerts that resolve in time. The limit is `alerts.resolve_s` (5 s), plus one tick,
  plus a quota window (11 s). It starts at the end of the last line, or when Kafka shows the replicas in sync again.
- `advice_repaged`: number of alerts that fired again in their scene, as a new alert, after their advice was followed.
- `advice_lowered`: number of rates (broker and role) that are lower after the advice than before, as the brokers report
  them. A new rate where none was set counts as lower.
- `numbers_wrong`: rows of `gold/throttle_headroom` in the scenes `directories` that are off by more than 20 % (required
  rate) or 30 % (remaining bytes).

**Parts.** `--scenes` names classes or single scenes (`large,near:2`), `--each` the number of scenes per class.
`benchmarks/parts/large_moves` keeps the record of each scene. Scenes recorded with the same code (the product's and
their own) count together and are not repeated. `python -m benchmarks.groups.large_moves` runs scenes without keeping
the figures.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError

from benchmarks.faults.brokers import BrokerFaults
from benchmarks.fixtures.bench_cluster import SHORT_ALERT_TIMES, BenchCluster, OnProgress
from benchmarks.fixtures.part_records import PartRecords, print_outcomes
from benchmarks.fixtures.processes import kill_watch
from benchmarks.groups.large_moves.record import HEADER, problems, row, scene_record
from benchmarks.groups.large_moves.scenes.base import BROKERS, MoveScene
from benchmarks.groups.large_moves.schedule import schedule
from benchmarks.groups.large_moves.scoring.advice import CommandRotation
from benchmarks.groups.large_moves.stage.shell import Shell
from benchmarks.groups.large_moves.stage.stage import SceneContext, SceneTools
from benchmarks.groups.large_moves.stage.topic import LargeTopic
from benchmarks.options.fields import AT_LEAST_ONE, CheckedText, option
from benchmarks.results import Figure, parts
from headroom.cluster.embedded import BrokerOptions
from headroom.schemas.errors import HeadroomError

# Deleted partitions leave the disk at once, because a run writes about 100,000 of them.
_PROPERTIES = {"log.segment.delete.delay.ms": "1000"}
_FIRST_VERDICT_S = 240.0
# A write rate is a mean over 10 s, and the samples must be from after the start of the load.
_STEADY_S = 14.0
_ATTEMPTS = 2
_REASON_CHARACTERS = 500


@dataclass(frozen=True)
class LargeMovesOptions:
    """Options of the group ``large_moves``."""

    scenes: str = option("", CheckedText(schedule), "Classes or single scenes, comma-separated; default: all.")
    each: int | None = option(None, AT_LEAST_ONE, "Scenes of each class; default: all of the class.")


def measure(on_progress: OnProgress, options: LargeMovesOptions) -> list[Figure]:
    """Play the scenes that are left, and return the figures over all that were played with this code.

    Raises:
        HeadroomError: a scene is unknown, or the brokers could not be restored to the state before a scene.
    """
    scenes = RECORDS.without_record(schedule(options.scenes, options.each))
    records: list[dict[str, Any]] = []
    with BenchCluster(BROKERS, BrokerOptions(properties=_PROPERTIES), second_log_dir=True) as bench:
        bench.add_section("alerts", SHORT_ALERT_TIMES)
        tools = SceneTools(bench, BrokerFaults(bench), Shell(bench.folder / "shell"), CommandRotation(), on_progress)
        _pin_ticks_topic(bench)
        for scene in scenes:
            records.append(_play(tools, scene))
            RECORDS.write(scene, records[-1])
    print_outcomes(HEADER, [(row(record), problems(record)) for record in records])
    return figures(RECORDS.read_all(schedule()))


def figures(records: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Return the figures of scenes. Void scenes count only as such, and a ratio without any items is left out.

    Args:
        records: records of ``benchmarks.groups.large_moves.record``.
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
        Figure("advice_repaged", sum(advice["repaged"] for advice in followed), "alerts", len(followed)),
        Figure("advice_lowered", lowered, "rates", len(followed)),
        Figure("numbers_wrong", sum(len(one["wrong_numbers"]) for one in real), "numbers", checked),
        Figure("nasty_scenes", len(real), "scenes", len(records)),
        Figure("nasty_scenes_void", len(records) - len(real), "scenes", len(records)),
    ]


def _folder(scene: MoveScene) -> Path:
    """Return the folder for the record of a scene. It depends only on the scene's own code, not on other scenes."""
    return parts("large_moves", __name__, type(scene).__module__, without=schedule.__module__)


RECORDS: PartRecords[MoveScene] = PartRecords(_folder)


def _pin_ticks_topic(bench: BenchCluster) -> None:
    """Keep the ticks topic out of the second log directories, which some scenes remove."""
    ticks = bench.settings.ticks
    log_dirs = {(ticks.topic, n, b): str(bench.log_dir(b)) for n in range(ticks.partitions) for b in bench.brokers}
    bench.admin.alter_replica_log_dirs(log_dirs)


def _play(tools: SceneTools, scene: MoveScene) -> dict[str, Any]:
    """Run a scene, and return its record. A void scene runs once more."""
    for attempt in range(_ATTEMPTS):
        tools.on_progress(f"{scene.name}: {scene.title}{', once more' if attempt else ''}")
        record = _play_once(tools, scene, attempt)
        for problem in problems(record):
            tools.on_progress(f"    {problem}")
        if record["void"] is None:
            break
    return record


def _play_once(tools: SceneTools, scene: MoveScene, attempt: int) -> dict[str, Any]:
    """Run a scene once. Afterwards all brokers are up, nothing moves, and no throttle is set."""
    name = f"{scene.key.replace('_', '-')}-{scene.number}-{attempt}"
    store = tools.bench.folder / f"store-{name}"
    topic = LargeTopic(
        tools.bench, name, scene.groups(), scene.sizes_draw(), tools.brokers.down, scene.log_dirs(tools.bench)
    )
    with tools.bench.watch(store) as watch, topic:
        context = SceneContext(tools, watch, store, topic)
        try:
            return scene_record(scene, context, _void(scene, context))
        finally:
            # Its tables are not used again.
            kill_watch(watch)
            tools.brokers.repair()


def _void(scene: MoveScene, context: SceneContext) -> str | None:
    """Run a scene once write rates are known, and return the reason if it is void, otherwise None."""
    watch = context.watch
    try:
        watch.wait(lambda: watch.verdicts() is not None, _FIRST_VERDICT_S, "the first verdicts")
        context.observe(_STEADY_S)
        context.began_s = time.monotonic()
        scene.play(context)
    except (HeadroomError, KafkaError) as error:
        return str(error)[:_REASON_CHARACTERS]
    return None
