"""Record of a scene, for benchmarks/parts and for the terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.groups.large_moves.scenes.base import MoveScene
from benchmarks.groups.large_moves.scoring.advice import FollowedAdvice, RatesInForce
from benchmarks.groups.large_moves.scoring.scoring import Score, ScoredAlert, score
from benchmarks.groups.large_moves.scoring.truth import Cause, PrintedAlert
from benchmarks.groups.large_moves.stage.stage import SceneContext

Record = Mapping[str, Any]
HEADER = ("scene", "what happens", "alerts", "false", "doubled", "missing", "advice", "failed", "unresolved", "void")


def row(record: Record) -> tuple[str, ...]:
    """Return the row of a scene under ``HEADER``."""
    alerts, advice = record["alerts"], record["advice"]
    counts = (
        len(alerts),
        sum(alert["wrong"] is not None for alert in alerts),
        sum(alert["doubled"] for alert in alerts),
        sum(cause["missing"] for cause in record["causes"]),
        len(advice),
        sum(line["code"] != 0 for followed in advice for line in followed["lines"]),
        sum(not followed["resolves"] for followed in advice),
    )
    return (record["scene"], record["title"], *map(str, counts), "void" if record["void"] else "")


def problems(record: Record) -> list[str]:
    """Return a sentence for each problem of a scene, with the text of the alert."""
    alerts = [(alert, _describe(alert["announcements"][0])) for alert in record["alerts"]]
    sentences = [f"void: {record['void']}"] if record["void"] else []
    sentences += [f"false: {shown} ({alert['wrong']})" for alert, shown in alerts if alert["wrong"] is not None]
    sentences += [f"doubled, {alert['cause']}: {shown}" for alert, shown in alerts if alert["doubled"]]
    sentences += [f"missing: {cause['name']}" for cause in record["causes"] if cause["missing"]]
    for followed in record["advice"]:
        about = f"{followed['kind']}, {followed['subject']}"
        failed = [line for line in followed["lines"] if line["code"]]
        sentences += [f"{about}: exit code {line['code']}: {line['line']}: {line['output']}" for line in failed]
        sentences += [f"{about}: lowered {rate}" for rate in followed["lowered"]]
        if not followed["resolves"]:
            sentences.append(f"{about}: not resolved within {followed['limit_s']:.0f} s by {followed['way']}")
    return [*sentences, *(f"wrong number: {text}" for text in record["wrong_numbers"])]


def _describe(first: Record) -> str:
    return f"{first['s']:.0f} s {first['severity']} {first['kind']} [{first['subject']}] {first['summary']}"


def scene_record(scene: MoveScene, context: SceneContext, void: str | None) -> dict[str, Any]:
    """Return the record of a scene as JSON values. Figures are computed from it, so that a run can be made in parts.

    Args:
        scene: the scene.
        context: its context after the run.
        void: reason why it does not count: its fault did not happen as planned; None if it counts.
    """
    announcements, began_s = context.announcements(), context.began_s
    scored = score(context.causes, announcements)
    return {
        "scene": scene.name,
        "title": scene.title,
        "parameters": vars(scene),
        "began_s": time.time() - time.monotonic() + began_s,
        "began_monotonic_s": began_s,
        "void": void,
        "notes": [{"s": round(at_s, 1), "text": text} for at_s, text in context.notes],
        "causes": [_cause(cause, began_s, scored) for cause in context.causes],
        "alerts": [_alert(alert, context, scored) for alert in scored.alerts],
        "infos": [_announcement(one, began_s) for one in announcements if not one.is_page],
        "advice": [_followed_json(followed, began_s, announcements) for followed in context.followed],
        "verdicts": [
            {"s": round(line.at_s - began_s, 1), "brokers": line.fields["sides"]}
            for line in context.watch.lines
            if line.fields["type"] == "verdicts"
        ],
        "checked_numbers": context.checked,
        "wrong_numbers": list(context.wrong_numbers),
    }


def _since(began_s: float, at_s: float | None) -> float | None:
    return None if at_s is None else round(at_s - began_s, 1)


def _cause(cause: Cause, began_s: float, scored: Score) -> Record:
    return {
        "name": cause.name,
        "required": cause.required,
        "missing": cause.name in scored.missing,
        "from_s": _since(began_s, cause.from_s),
        "until_s": _since(began_s, cause.until_s),
        "within_s": cause.within_s,
        "claims": [f"{claim.kind.value} {claim.subject}" for claim in cause.claims],
    }


def _alert(alert: ScoredAlert, context: SceneContext, scored: Score) -> Record:
    resolved = context.watch.resolving_event(alert.first.alert_id)
    return {
        "alert_id": alert.first.alert_id,
        "cause": alert.cause,
        "wrong": alert.wrong,
        "doubled": alert in scored.doubled,
        "resolved_s": _since(context.began_s, resolved.at_s if resolved else None),
        "announcements": [_announcement(one, context.began_s) for one in alert.announcements],
    }


def _announcement(one: PrintedAlert, began_s: float) -> Record:
    evidence = {key: value for key, value in one.evidence.items() if key != "partitions"}
    return {
        "s": _since(began_s, one.at_s),
        "kind": one.kind,
        "subject": one.subject,
        "severity": one.severity,
        "summary": one.summary,
        "evidence": {**evidence, "partitions_shown": len(one.evidence.get("partitions") or ())},
        "recommendation": one.recommendation,
    }


def _followed_json(followed: FollowedAdvice, began_s: float, announcements: Sequence[PrintedAlert]) -> Record:
    return {
        "kind": followed.announcement.kind,
        "subject": followed.announcement.subject,
        "way": followed.way,
        "lines": [vars(ran) for ran in followed.lines],
        "rates_before": _rates(followed.before),
        "rates_after": _rates(followed.after),
        "lowered": [f"broker {broker} as {role.value}" for broker, role in followed.lowered],
        "done_s": _since(began_s, followed.done_s),
        "limit_s": followed.limit_s,
        "resolved_s": _since(began_s, followed.resolved_s),
        "resolves": followed.resolves,
        "repaged": followed.is_repaged(announcements),
        "promised_finish_s": followed.promised_finish_s,
        "real_finish_s": _since(followed.done_s, followed.finished_s),
    }


def _rates(rates: RatesInForce) -> dict[str, float | None]:
    return {f"{broker} {role.value}": rate for (broker, role), rate in sorted(rates.items())}
