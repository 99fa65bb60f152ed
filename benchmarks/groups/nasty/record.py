"""Records of scenes, for benchmarks/parts and for the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.nasty.scenes.base import NastyScene
from benchmarks.groups.nasty.scoring.advice import FollowedAdvice, RatesInForce
from benchmarks.groups.nasty.scoring.scoring import Score, ScoredAlert, score
from benchmarks.groups.nasty.scoring.truth import Cause, PrintedAlert
from benchmarks.groups.nasty.stage.stage import SceneContext
from cli.common.output import print_table


@dataclass(frozen=True)
class SceneResult:
    """Result of one scene.

    Attributes:
        scene: the scene.
        void: reason why it does not count: its fault did not happen as planned; None if it counts.
        score: score of its alerts.
        followed: advice that was followed.
        wrong_numbers: compared numbers that were wrong.
        record: all of this as JSON values. Figures are computed from it, so that a run can be made in parts.
    """

    scene: NastyScene
    void: str | None
    score: Score
    followed: Sequence[FollowedAdvice]
    wrong_numbers: Sequence[str]
    record: dict[str, Any]


def outcome(scene: NastyScene, context: SceneContext, void: str | None) -> SceneResult:
    """Return the result of a scene.

    Args:
        scene: the scene.
        context: its context after the run.
        void: reason why it does not count; None if it counts.
    """
    scored = score(context.causes, context.announcements())
    return SceneResult(
        scene, void, scored, list(context.followed), list(context.wrong_numbers), _record(scene, context, void, scored)
    )


def store_record(one: SceneResult, folder: Path) -> None:
    """Write the record of a scene."""
    write_record(folder, _file_name(one.scene), one.record)


def is_recorded(scene: NastyScene, folder: Path) -> bool:
    """Return whether a scene has a record that counts."""
    record = stored_record(scene, folder)
    return record is not None and record["void"] is None


def stored_record(scene: NastyScene, folder: Path) -> dict[str, Any] | None:
    """Return the record of a scene; None if it has not run."""
    return read_record(folder, _file_name(scene))


def _file_name(scene: NastyScene) -> str:
    return scene.name.replace(":", "-")


def print_outcomes(outcomes: Sequence[SceneResult]) -> None:
    """Print a line per scene, then all wrong alerts and all failed advice."""
    header = (
        "scene",
        "what happens",
        "alerts",
        "false",
        "doubled",
        "missing",
        "advice",
        "failed",
        "unresolved",
        "void",
    )
    print_table("Scenes", header, [_row(one) for one in outcomes])
    for one in outcomes:
        for problem in problems(one):
            print(f"{one.scene.name}: {problem}")


def problems(one: SceneResult) -> list[str]:
    """Return a sentence for each problem of a scene, with the text of the alert."""
    began_s = one.record["began_monotonic_s"]
    found = [f"void: {one.void}"] if one.void else []
    found += [f"false: {_shown(alert, began_s)} ({alert.wrong})" for alert in one.score.false]
    found += [f"doubled, {alert.cause}: {_shown(alert, began_s)}" for alert in one.score.doubled]
    found += [f"missing: {name}" for name in one.score.missing]
    for followed in one.followed:
        alert = f"{followed.announcement.kind}, {followed.announcement.subject}"
        found += [f"{alert}: exit code {ran.code}: {ran.line}: {ran.output}" for ran in followed.lines if ran.code]
        found += [f"{alert}: lowered {broker} as {role.value}" for broker, role in followed.lowered]
        if not followed.resolves:
            found.append(f"{alert}: not resolved within {followed.limit_s:.0f} s by {followed.way}")
    return [*found, *(f"wrong number: {text}" for text in one.wrong_numbers)]


def _shown(alert: ScoredAlert, began_s: float) -> str:
    first = alert.first
    return f"{first.at_s - began_s:.0f} s {first.severity} {first.kind} [{first.subject}] {first.summary}"


def _row(one: SceneResult) -> tuple[str, ...]:
    counts = (
        len(one.score.alerts),
        len(one.score.false),
        len(one.score.doubled),
        len(one.score.missing),
        len(one.followed),
        sum(1 for followed in one.followed for ran in followed.lines if ran.code),
        sum(1 for followed in one.followed if not followed.resolves),
    )
    return (one.scene.name, one.scene.title, *(str(count) for count in counts), "void" if one.void else "")


def _record(scene: NastyScene, context: SceneContext, void: str | None, scored: Score) -> dict[str, Any]:
    epoch_s = time.time() - time.monotonic()
    return {
        "scene": scene.name,
        "title": scene.title,
        "parameters": vars(scene),
        "began_s": epoch_s + context.began_s,
        "began_monotonic_s": context.began_s,
        "void": void,
        "notes": [{"s": round(at_s, 1), "text": text} for at_s, text in context.notes],
        "causes": [_cause(cause, context.began_s, scored) for cause in context.causes],
        "alerts": [_alert(alert, context, scored) for alert in scored.alerts],
        "infos": [_announcement(one, context.began_s) for one in context.announcements() if not one.is_page],
        "advice": [_followed(followed, context.began_s, context.announcements()) for followed in context.followed],
        "verdicts": [
            {"s": round(line.at_s - context.began_s, 1), "brokers": line.fields["sides"]}
            for line in context.watch.lines
            if line.fields["type"] == "verdicts"
        ],
        "checked_numbers": context.checked,
        "wrong_numbers": list(context.wrong_numbers),
    }


def _cause(cause: Cause, began_s: float, scored: Score) -> dict[str, Any]:
    return {
        "name": cause.name,
        "required": cause.required,
        "missing": cause.name in scored.missing,
        "from_s": round(cause.from_s - began_s, 1),
        "until_s": None if cause.until_s is None else round(cause.until_s - began_s, 1),
        "within_s": cause.within_s,
        "claims": [f"{claim.kind.value} {claim.subject}" for claim in cause.claims],
    }


def _alert(alert: ScoredAlert, context: SceneContext, scored: Score) -> dict[str, Any]:
    resolved = context.watch.resolving_event(alert.first.alert_id)
    return {
        "alert_id": alert.first.alert_id,
        "cause": alert.cause,
        "wrong": alert.wrong,
        "doubled": alert in scored.doubled,
        "resolved_s": None if resolved is None else round(resolved.at_s - context.began_s, 1),
        "announcements": [_announcement(one, context.began_s) for one in alert.announcements],
    }


def _announcement(one: PrintedAlert, began_s: float) -> dict[str, Any]:
    evidence = {key: value for key, value in one.evidence.items() if key != "partitions"}
    return {
        "s": round(one.at_s - began_s, 1),
        "kind": one.kind,
        "subject": one.subject,
        "severity": one.severity,
        "summary": one.summary,
        "evidence": {**evidence, "partitions_shown": len(one.evidence.get("partitions") or ())},
        "recommendation": one.recommendation,
    }


def _followed(followed: FollowedAdvice, began_s: float, announcements: Sequence[PrintedAlert]) -> dict[str, Any]:
    finished_s = followed.finished_s
    return {
        "kind": followed.announcement.kind,
        "subject": followed.announcement.subject,
        "way": followed.way,
        "lines": [vars(ran) for ran in followed.lines],
        "rates_before": _rates(followed.before),
        "rates_after": _rates(followed.after),
        "lowered": [f"broker {broker} as {role.value}" for broker, role in followed.lowered],
        "done_s": round(followed.done_s - began_s, 1),
        "limit_s": followed.limit_s,
        "resolved_s": None if followed.resolved_s is None else round(followed.resolved_s - began_s, 1),
        "resolves": followed.resolves,
        "repaged": followed.is_repaged(announcements),
        "promised_finish_s": followed.promised_finish_s,
        "real_finish_s": None if finished_s is None else round(finished_s - followed.done_s, 1),
    }


def _rates(rates: RatesInForce) -> dict[str, float | None]:
    return {f"{broker} {role.value}": rate for (broker, role), rate in sorted(rates.items())}
