"""Alerts on migrations: which are raised, what they contain, and what unknown partitions do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.migrations import MigrationInputs
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.catalogue import evaluate_rules
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.config import AlertSettings
from tests.unit.builders.migration_progress import doomed, progress, switched, unread

# 2027-01-15 08:00:00 UTC.
TICK_MS = 1_800_000_000_000
RECOMMENDER = Recommender(ThrottlePolicy(), "target:9092", "headroom.toml", origin_servers="origin:9092")
MIGRATION_KINDS = [kind for kind in AlertKind if kind.value.startswith("migration_")]
LATE = "E 700,000 was to be reached at 08:01:00 UTC, and is at 08:05:00 UTC."
MIRRORED: dict[str, Any] = {"method": "mirrored", "mirror_lag_offsets": 1_000, "acks": None}


def assess(*partitions: MigrationProgress, **inputs: Any) -> Assessment:
    known: dict[str, Any] = {"migrations": MigrationInputs(partitions), "tick_ms": TICK_MS}
    return evaluate_rules(RuleInputs((), AlertSettings(), RECOMMENDER, **known | inputs))


def only(*partitions: MigrationProgress) -> Finding:
    (finding,) = assess(*partitions).findings
    assert finding.subject == "migration m"
    assert finding.cause == ""
    json.dumps([finding.evidence_json(), finding.recommendation.to_json()])
    return finding


def kinds(*partitions: MigrationProgress) -> list[AlertKind]:
    return [finding.kind for finding in assess(*partitions).findings]


def kept(*partitions: MigrationProgress) -> set[str]:
    return {kind.value for kind, _ in assess(*partitions).keep_firing}


def test_a_migration_on_plan_raises_nothing_and_keeps_nothing() -> None:
    assert assess(progress(), progress(1)) == Assessment()
    assert assess() == Assessment()


def test_a_tick_without_data_keeps_all_alerts_as_they_are() -> None:
    active = {(kind, "migration m") for kind in MIGRATION_KINDS}
    silent = assess(migrations=None, active=active)
    assert (silent.findings, silent.keep_firing) == ([], active)


@pytest.mark.parametrize("verdict", [MigrationVerdict.SHIELDED, MigrationVerdict.NO_DATA])
def test_an_unread_partition_neither_raises_nor_resolves(verdict: MigrationVerdict) -> None:
    assert kinds(unread(verdict)) == []
    assert kept(progress(), unread(verdict, method="mirrored")) == {kind.value for kind in MIGRATION_KINDS}


def test_one_migration_gives_one_alert_and_another_one_its_own() -> None:
    lost = [progress(number, lost_offsets=10) for number in range(30)]
    first, second = assess(*lost, progress(0, migration="n", lost_offsets=1)).findings
    assert (first.subject, second.subject) == ("migration m", "migration n")
    evidence = first.evidence_json()
    assert (evidence["affected_partitions"], len(evidence["worst"])) == (30, 20)


def test_lost_records_are_critical_at_once_with_their_number() -> None:
    found = only(progress(lost_offsets=100), progress(1, lost_offsets=1_200), progress(2))
    assert (found.kind, found.severity, found.hold_s) == (AlertKind.MIGRATION_RECORDS_LOST, Severity.CRITICAL, 0.0)
    assert found.summary == (
        "Migration m has lost 1,300 offsets below E that the origin had acknowledged, in 2 of 3 partitions: orders-1 "
        "has lost 1,200 offsets"
    )
    evidence = found.evidence_json()
    assert (evidence["migration"], evidence["offsets"]) == ("m", 1_300)
    assert [(one["partition"], one["lost_offsets"]) for one in evidence["worst"]] == [(1, 1_200), (0, 100)]


def test_a_loss_that_is_unknown_now_stays_as_it_was() -> None:
    assert kept(progress(lost_offsets=None)) == {"migration_records_lost"}


def test_an_overtaken_reader_has_number_time_and_the_retention_that_is_enough() -> None:
    found = only(progress(groups=(doomed(),)), progress(1))
    assert (found.kind, found.severity) == (AlertKind.MIGRATION_READER_OVERTAKEN, Severity.CRITICAL)
    # 3,900 s after 08:00:00.
    assert found.summary == (
        "Migration m: retention on the origin deletes 260,000 offsets of orders-0 that group billing has not read by "
        "09:05:00 UTC: it has 650,000 to read at 100.0 offsets/s; retention.ms of 7,440,000 (2 h 4 min) is enough for "
        "it"
    )
    assert found.recommendation.commands == [
        "kafka-configs.sh --bootstrap-server origin:9092 --alter --entity-type topics --entity-name orders "
        "--add-config retention.ms=7440000"
    ]
    evidence = found.evidence_json()
    assert (evidence["offsets"], evidence["at_ms"]) == (260_000, TICK_MS + 3_900_000)
    assert [(one["group"], one["lost_offsets"]) for one in evidence["readers"]] == [("billing", 260_000)]


def test_retention_that_overtakes_a_reader_in_days_has_the_date() -> None:
    # Seven days after 2027-01-15 08:00:00.
    found = only(progress(groups=(doomed(kept_s=604_800.0),)))
    assert "has not read by 2027-01-22 08:00:00 UTC: it has" in found.summary


def test_one_retention_is_enough_for_all_readers_of_a_topic() -> None:
    slower = doomed("audit", lost_offsets=5, gone_offsets=5, enough_retention_ms=9_000_000)
    found = only(progress(groups=(doomed(), slower)), progress(1, topic="u", groups=(doomed(),)))
    assert [command.rsplit(" ", 1)[1] for command in found.recommendation.commands] == [
        "retention.ms=9000000",
        "retention.ms=7440000",
    ]
    assert found.summary.endswith("; 520,005 offsets of 2 group(s) and 3 places in all")
    # Some are gone: it has begun.
    assert found.evidence_json()["at_ms"] is None


def test_no_retention_helps_a_group_that_does_not_read() -> None:
    found = only(progress(groups=(doomed(read_offsets_per_s=0.0, enough_retention_ms=None),)))
    assert found.recommendation.commands == []
    assert "retention.ms of" not in found.summary


@pytest.mark.parametrize(
    ("parts", "is_kept"),
    [
        # 100/s in 3,900 s are 390,000; exit_ratio 1.05: 371,428 x 1.05 = 389,999, 371,430 x 1.05 = 390,002.
        ({"left_offsets": 371_428}, False),
        ({"left_offsets": 371_430}, True),
        ({"left_offsets": 0}, False),
        ({"left_offsets": None}, True),
    ],
)
def test_a_reader_that_is_just_in_time_keeps_its_alert(parts: dict[str, Any], is_kept: bool) -> None:
    saved = doomed(**{"lost_offsets": 0, "enough_retention_ms": None, **parts})
    assert kinds(progress(groups=(saved,))) == []
    assert kept(progress(groups=(saved,))) == ({"migration_reader_overtaken"} if is_kept else set())


def test_writes_to_the_origin_after_the_switch_are_lost_unless_they_are_copied() -> None:
    grows = {"write_offsets_per_s": 12.0, "removable": False, "beyond_offsets": 40}
    found = only(switched(0, **grows), switched(1))
    assert (found.kind, found.severity, found.hold_s) == (
        AlertKind.MIGRATION_UNROUTED_WRITES,
        Severity.CRITICAL,
        # The rate is known to be of the time after the switch only then.
        20.0,
    )
    assert found.summary == (
        "Migration m: clients still write to the origin after the switch, 12.0 offsets/s to 1 of 2 partitions "
        "(orders-0 grows by 12.0 offsets/s): no reader gets them, and they go with the origin"
    )
    assert found.evidence_json()["offsets"] == 40
    assert only(switched(0, method="linked", **grows)).severity is Severity.WARNING


def test_a_burst_that_is_over_is_found_at_once_by_its_records() -> None:
    burst = switched(0, has_late_writes=True, removable=False, beyond_offsets=50)
    found = only(burst, switched(1))
    assert (found.kind, found.severity, found.hold_s) == (
        AlertKind.MIGRATION_UNROUTED_WRITES,
        Severity.CRITICAL,
        0.0,
    )
    assert found.summary == (
        "Migration m: clients wrote to the origin after the switch, to 1 of 2 partitions (orders-0 has 50 offsets from "
        "E on): no reader gets them, and they go with the origin"
    )
    # Who wrote them is unknown; nobody wrote any.
    assert kept(switched(beyond_offsets=50, removable=False)) == {"migration_unrouted_writes"}
    assert kept(switched(beyond_offsets=0, removable=False)) == set()
    assert kept(switched(beyond_offsets=50, has_late_writes=False, removable=False)) == set()


def test_writes_to_an_ignored_origin_that_is_back_are_lost_also_below_its_end() -> None:
    ignored = {"status": "aged", "left_offsets": 100, "removable": False, "verdict": MigrationVerdict.DRAINED}
    found = only(switched(0, **ignored, write_offsets_per_s=10.0), switched(1))
    assert (found.kind, found.severity) == (AlertKind.MIGRATION_UNROUTED_WRITES, Severity.CRITICAL)
    assert kinds(switched(0, **ignored)) == []
    assert kept(switched(0, **ignored, write_offsets_per_s=None)) == {"migration_unrouted_writes"}


def test_writes_below_the_end_or_before_the_start_are_no_finding() -> None:
    assert kinds(progress(), progress(1, status="planned", left_offsets=0, switch_eta_s=0.0)) == []
    assert "migration_unrouted_writes" in kept(switched(write_offsets_per_s=None, removable=False))


@pytest.mark.parametrize(
    ("verdict", "severity"),
    [
        (MigrationVerdict.NEVER, Severity.WARNING),
        (MigrationVerdict.EARLY, Severity.WARNING),
        (MigrationVerdict.LATE, Severity.INFO),
    ],
)
def test_a_switch_off_plan_has_the_reason_of_its_worst_partition(verdict: MigrationVerdict, severity: Severity) -> None:
    found = only(progress(verdict=verdict, reason=LATE), progress(1))
    assert (found.kind, found.severity) == (AlertKind.MIGRATION_SWITCH_OFF_PLAN, severity)
    assert found.summary == (
        f"Migration m: 1 of 2 partitions switch off plan (1 {verdict.value}); orders-0: {LATE.removesuffix('.')}"
    )
    assert found.hold_s == 3.0


def test_the_worst_way_of_being_off_plan_comes_first() -> None:
    late = progress(0, verdict=MigrationVerdict.LATE, reason=LATE)
    never = progress(1, verdict=MigrationVerdict.NEVER, reason="The origin's log does not grow.", switch_eta_s=None)
    found = only(late, never)
    assert "(1 never, 1 late); orders-1: The origin's log does not grow" in found.summary
    assert found.evidence_json()["at_ms"] is None


def test_a_planned_switch_gets_another_end_by_the_command() -> None:
    early = progress(status="planned", verdict=MigrationVerdict.EARLY, reason=LATE, missing_routers=("a", "b"))
    advice = only(early).recommendation
    assert advice.commands == [
        "headroom migration run orders --name m --method routed --config headroom.toml --execute"
    ]
    assert (advice.reason or "").startswith("start the routers that have not agreed (a, b); ")


def test_a_nearer_end_that_is_not_in_force_gets_there_by_the_command() -> None:
    early = progress(status="planned", verdict=MigrationVerdict.EARLY, reason=LATE, reopened_end=700_000)
    advice = only(early).recommendation
    assert (advice.reason or "").startswith("run the command, which puts the nearer E in force, or the one before; ")
    assert (advice.reason or "").endswith("what lands from E on is held until then, and readers wait")
    assert advice.commands == [
        "headroom migration run orders --name m --method routed --config headroom.toml --execute"
    ]


def test_a_log_that_never_gets_to_its_end_gets_a_nearer_one_by_the_command() -> None:
    advice = only(progress(verdict=MigrationVerdict.NEVER, reason=LATE)).recommendation
    assert advice.commands == [
        "headroom migration run orders --name m --method routed --end-here --config headroom.toml --execute"
    ]
    late = only(progress(verdict=MigrationVerdict.LATE, reason=LATE)).recommendation
    assert "headroom migration run --end-here" in (late.reason or "")
    # The end of another method is that of a log which was there.
    drained = only(progress(method="drained", verdict=MigrationVerdict.NEVER, reason=LATE)).recommendation
    assert drained.commands == []


def test_a_more_severe_verdict_hides_whether_the_switch_is_on_plan() -> None:
    assert "migration_switch_off_plan" in kept(progress(lost_offsets=5, verdict=MigrationVerdict.LOST))


def test_acks_at_risk_names_the_causes_and_what_would_be_lost_now() -> None:
    found = only(
        progress(acks="1", at_risk_offsets=120),
        progress(1, min_insync_replicas=1, at_risk_offsets=0),
        progress(2, topic="u", unclean_elections=True, at_risk_offsets=None),
        progress(3),
    )
    assert (found.kind, found.severity) == (AlertKind.MIGRATION_ACKS_AT_RISK, Severity.WARNING)
    assert found.summary == (
        "Migration m: a leader switch on the origin could lose acknowledged records of 3 of 4 partitions, now at least "
        "120 offsets: a router produces with acks=1; min.insync.replicas is below 2 (orders); unclean elections are "
        "allowed (u)"
    )
    assert found.recommendation.commands == [
        "kafka-configs.sh --bootstrap-server origin:9092 --alter --entity-type topics --entity-name u "
        "--add-config unclean.leader.election.enable=false"
    ]


def test_acks_matter_no_more_once_the_origin_is_at_its_end() -> None:
    assert kinds(switched(acks="1", removable=False)) == []
    assert kept(progress(acks=None)) == {"migration_acks_at_risk"}
    # Producers of a mirrored topic are no routers.
    assert "migration_acks_at_risk" not in kept(progress(**MIRRORED, mirror_eta_s=300.0))


@pytest.mark.parametrize(
    ("parts", "severity", "text"),
    [
        # 300 s x 1.5 = 450 s.
        (
            {"mirror_eta_s": 451.0},
            Severity.WARNING,
            "it has 1,000 offsets to copy, and is at E at 08:07:31 UTC, the origin at 08:05:00 UTC",
        ),
        ({"mirror_eta_s": None}, Severity.WARNING, "it has 1,000 offsets to copy, and copies none"),
        (
            {"mirror_eta_s": 400.0, "kept_s": 390.0},
            Severity.CRITICAL,
            "it has 1,000 offsets to copy, and is at E at 08:06:40 UTC; retention may delete them from 08:06:30 UTC on",
        ),
    ],
)
def test_a_mirror_is_behind_if_it_is_late_or_copies_nothing(
    parts: dict[str, Any], severity: Severity, text: str
) -> None:
    found = only(progress(**MIRRORED, **parts), progress(1, **MIRRORED, mirror_eta_s=300.0))
    assert (found.kind, found.severity, found.hold_s) == (AlertKind.MIGRATION_MIRROR_BEHIND, severity, 30.0)
    assert found.summary == f"Migration m: the mirror is behind in 1 of 2 partitions; orders-0: {text}"


def test_a_mirror_that_keeps_up_raises_nothing() -> None:
    assert kinds(progress(**MIRRORED, mirror_eta_s=449.0)) == []
    # 300 s x (1 + 0.5 / 1.05) = 442.9 s.
    assert kept(progress(**MIRRORED, mirror_eta_s=449.0)) == {"migration_mirror_behind"}
    assert kept(progress(**MIRRORED, mirror_eta_s=440.0)) == set()
    assert kept(progress(**{**MIRRORED, "mirror_lag_offsets": None})) == {"migration_mirror_behind"}


def test_the_origin_is_removable_once_all_partitions_are() -> None:
    found = only(switched(), switched(1, topic="u"))
    assert (found.kind, found.severity) == (AlertKind.MIGRATION_ORIGIN_REMOVABLE, Severity.INFO)
    assert found.summary == (
        "Migration m is over: all 2 partition(s) of orders, u are on the target, all groups have read the origin up to "
        "E, and nothing is written there"
    )
    assert found.recommendation.commands == [
        "headroom migration run orders u --name m --method routed --until aged --drop --config headroom.toml --execute"
    ]
    assert kinds(switched(), switched(1, removable=False)) == []
    assert kept(switched(), switched(1, removable=None)) == {"migration_origin_removable"}
