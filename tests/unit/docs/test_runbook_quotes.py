"""Every runbook begins with the text of its alert as the code writes it, for the case of the page."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.broker_load import BalanceInputs
from headroom.alerts.inputs.migrations import MigrationInputs
from headroom.alerts.inputs.throttle_status import LeadershipRisk, OutOfSyncReplica
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.rules.catalogue import evaluate_rules
from headroom.alerts.rules.no_ticks import MissingTicks
from headroom.alerts.rules.reassignments.eta_tracker import EtaTracker
from headroom.alerts.rules.rule import RuleInputs
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.alerts import AlertKind
from headroom.schemas.keys import Role
from tests.unit.builders.broker_load import loads
from tests.unit.builders.leader_balance import balance
from tests.unit.builders.migration_progress import doomed, progress, switched
from tests.unit.builders.throttle_status import MB, SETTINGS, TICK_MS, assessment_of, partition, status

RUNBOOKS = Path(__file__).resolve().parents[3] / "docs" / "runbooks"
LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
RECOMMENDER = Recommender(ThrottlePolicy(), "broker1:9092")
SWITCHED = {"previous_leader": 1, "switch_tick_ms": 1}


def quotes(page: str) -> list[str]:
    """Return the quotes of the page, one line each."""
    blocks = re.findall(r"^(?:> .+\n)+", page, re.MULTILINE)
    return [" ".join(line.removeprefix("> ") for line in block.splitlines()) for block in blocks]


def findings(statuses: object = (), **inputs: object) -> list[Finding]:
    return evaluate_rules(RuleInputs(statuses, SETTINGS, RECOMMENDER, **inputs)).findings


def orders(number: int, leader: int = 2, **more: object) -> object:
    return partition(number, topic="orders", leader=leader, **more)


def lost(broker: int, *numbers: int, count: int, moving: bool, alive: bool) -> list[Finding]:
    """A broker that is out of the ISR of some partitions; the first are named."""
    named = tuple(OutOfSyncReplica("orders", number, 1, moving) for number in numbers)
    counts = {"lost_replicas": count, "lost_moving_replicas": count if moving else 0}
    known = {"lost": named, "throttle_source": "none", "alive": alive}
    return assessment_of(status(broker, FOLLOWER, None, 0, limited=0, **counts, **known)).findings


def at_ms(hour: int, minute: int, second: int = 0) -> int:
    return int(datetime(2026, 11, 21, hour, minute, second, tzinfo=timezone.utc).timestamp() * 1000)


def slipping() -> list[Finding]:
    # At 15:20 40 min are left, at 15:50 50 min: the finish goes from 16:00 to 16:40.
    expectation = EtaTracker()
    for tick_ms, eta_s in ((at_ms(15, 20), 2400), (at_ms(15, 50), 3000)):
        found = findings([status(3, FOLLOWER, 9, 4, eta_s=eta_s)], tick_ms=tick_ms, eta_tracker=expectation)
    return found


def twenty(fourth: MigrationProgress) -> list[MigrationProgress]:
    return [fourth if number == 4 else progress(number) for number in range(20)]


def migrating(*partitions: MigrationProgress) -> list[Finding]:
    return findings(migrations=MigrationInputs(partitions), tick_ms=TICK_MS)


def silent() -> list[Finding]:
    tick_ms = at_ms(15, 17, 35)
    return [MissingTicks("orders", tick_ms, tick_ms + 1000, tick_ms + 42_000, None, 15).finding(RECOMMENDER)]


MIRRORED = {"method": "mirrored", "mirror_lag_offsets": 1_000, "acks": None}
LATE = "E 700,000 was to be reached at 12:05:00 UTC, and is at 12:10:00 UTC: 600,000 offsets are left at 1,000.0/s."
FREE = {"followers": 0, "in_sync_followers": 0}
DONE = {"moving": False, "in_sync_followers": 2}
CASES = {
    AlertKind.THROTTLE_BELOW_LEADER_WRITE: lambda: (
        assessment_of(status(2, LEADER, 5.6, 8, orders(0, **SWITCHED), orders(1), in_sync_mb=4)).findings
    ),
    AlertKind.THROTTLE_BELOW_INBOUND: lambda: (
        assessment_of(status(3, FOLLOWER, 5, 6, orders(0), orders(1), orders(2))).findings
    ),
    AlertKind.THROTTLE_LEFT_BEHIND: lambda: (
        assessment_of(
            *[status(b, LEADER, 5.6, 4, *[orders(n, **DONE) for n in (0, 1)], limited=0) for b in (1, 2, 3)]
        ).findings
    ),
    AlertKind.THROTTLE_AT_RISK: lambda: (
        assessment_of(
            status(2, LEADER, 5.6, 4, orders(1)),
            status(2, FOLLOWER, 5.6, 2, orders(0, leader=1), takeover=LeadershipRisk(4 * MB, "orders", 0, 1)),
        ).findings
    ),
    AlertKind.LEADER_UNTHROTTLED: lambda: (
        assessment_of(
            status(1, LEADER, 9, 4, orders(1, leader=1)),
            status(
                3,
                LEADER,
                9,
                0,
                orders(0, leader=3, **SWITCHED, **FREE),
                in_sync_mb=0,
                limited=0,
                free=1,
                used_bytes_per_s=0.0,
            ),
        ).findings
    ),
    # 2 of the 12 partitions are led by broker 1, which sends 2.00 MB/s to the 2 others of 3 replicas of each.
    AlertKind.REASSIGNMENT_WITHOUT_THROTTLE: lambda: (
        assessment_of(
            *[
                status(
                    b, LEADER, None, 0, *[orders(n, leader=b, **FREE) for n in (2 * b, 2 * b + 1)], limited=0, free=2
                )
                for b in range(1, 7)
            ]
        ).findings
    ),
    AlertKind.REASSIGNMENT_STALLED: lambda: (
        assessment_of(status(3, FOLLOWER, 9, 4, orders(0, stalled=True), alive=False, stall="unknown")).findings
    ),
    AlertKind.ETA_SLIPPING: slipping,
    AlertKind.ISR_SHRINK_DURING_MOVE: lambda: lost(1, 0, 1, 2, count=3, moving=True, alive=True),
    AlertKind.UNDER_REPLICATED: lambda: lost(3, 3, 4, 5, count=14, moving=False, alive=False),
    AlertKind.LEADER_IMBALANCE: lambda: findings(balances=[balance(2, 100, electable=30)]),
    AlertKind.PREFERRED_LEADER_UNAVAILABLE: lambda: findings(balances=[balance(3, 40, unavailable=14, alive=False)]),
    AlertKind.LOAD_OUT_OF_BAND: lambda: findings(loads=BalanceInputs(loads({1: 61.2, 2: 40, 3: 36, 4: 35.2}))),
    AlertKind.HOT_BROKER: lambda: findings(
        loads=BalanceInputs(loads({}, {1: 110, 2: 50, 3: 45, 4: 45}, network_out_capacity=125 * MB))
    ),
    AlertKind.SLOW_BROKER: lambda: findings(
        loads=BalanceInputs(loads(dict.fromkeys(range(1, 11), 20.0), rounds={3: 12}, flush_s={3: 2.4}))
    ),
    AlertKind.CAPACITY_AT_RISK: lambda: findings(
        loads=BalanceInputs(risks=[CapacityRisk("broker 2", 3, "network_out", 118 * MB, 100 * MB)])
    ),
    AlertKind.MIGRATION_RECORDS_LOST: lambda: migrating(*twenty(progress(4, lost_offsets=120))),
    AlertKind.MIGRATION_READER_OVERTAKEN: lambda: migrating(progress(groups=(doomed(),))),
    AlertKind.MIGRATION_UNROUTED_WRITES: lambda: [
        finding
        for found in ({"write_offsets_per_s": 12.0}, {"has_late_writes": True, "beyond_offsets": 50})
        for finding in migrating(switched(0, removable=False, **found), switched(1))
    ],
    AlertKind.MIGRATION_SWITCH_OFF_PLAN: lambda: migrating(
        *twenty(progress(4, verdict=MigrationVerdict.LATE, reason=LATE))
    ),
    AlertKind.MIGRATION_ACKS_AT_RISK: lambda: migrating(*twenty(progress(4, acks="1", at_risk_offsets=120))),
    AlertKind.MIGRATION_MIRROR_BEHIND: lambda: migrating(
        progress(0, mirror_eta_s=451.0, **MIRRORED), progress(1, mirror_eta_s=300.0, **MIRRORED)
    ),
    AlertKind.MIGRATION_ORIGIN_REMOVABLE: lambda: migrating(switched(), switched(1, topic="u")),
    AlertKind.NO_DATA: lambda: [
        *assessment_of(
            status(
                3, FOLLOWER, None, None, throttle_known=False, reason="its throttle rates could not be read: no answer"
            )
        ).findings,
        *silent(),
    ],
    AlertKind.STORE_UNWRITABLE: lambda: findings(
        store_trouble="/var/lib/headroom cannot be written (No space left on device)"
    ),
}


@pytest.mark.parametrize("kind", list(AlertKind))
def test_a_runbook_quotes_its_alert_as_the_code_writes_it(kind: AlertKind) -> None:
    text = [finding.summary for finding in CASES[kind]() if finding.kind is kind]
    quoted = quotes((RUNBOOKS / f"{kind.value}.md").read_text(encoding="utf-8"))
    assert quoted
    assert [quote for quote in quoted if quote not in text] == [], text
