"""Every kind of alert as each of its readers gets it: a terminal, Slack, Alertmanager, a web server."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receivers.alertmanager import AlertmanagerReceiver, labels
from headroom.alerts.delivery.receivers.slack_blocks import alert_blocks, change_text, plain_text
from headroom.alerts.delivery.receivers.webhook import WebhookReceiver
from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.cluster_inputs import Dated
from headroom.alerts.inputs.throttle_status import LeadershipRisk, OutOfSyncReplica, ThrottleStatus
from headroom.alerts.text.terminal import render_event
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.migration.progress.progress import MigrationVerdict
from headroom.schemas.alerts import AlertEvent, AlertKind
from headroom.schemas.config import (
    AlertmanagerSettings,
    AlertSettings,
    ClusterSettings,
    MigrationSettings,
    OriginSettings,
    Settings,
    WebhookSettings,
)
from headroom.schemas.keys import Role
from tests.unit.builders.broker_load import loads
from tests.unit.builders.leader_balance import PLAN_SUMMARY, balance
from tests.unit.builders.migration_progress import doomed, progress, switched
from tests.unit.builders.throttle_status import MB, TICK_MS, partition, status
from tests.unit.fakes.receivers import Scripted, serving

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
LISTED = status(1, LEADER, 9, 4, partition())
UNLISTED = partition(1, leader=2, followers=0, in_sync_followers=0)
RESTING = partition(moving=False, in_sync_followers=2)
RISK = LeadershipRisk(4 * MB, "t", 9, 1)
LOST = {"lost": (OutOfSyncReplica("t", 0, 1, True), OutOfSyncReplica("u", 0, 1, False)), "lost_replicas": 2}
MIGRATIONS = {
    AlertKind.MIGRATION_RECORDS_LOST: progress(lost_offsets=120),
    AlertKind.MIGRATION_READER_OVERTAKEN: progress(groups=(doomed(),)),
    AlertKind.MIGRATION_UNROUTED_WRITES: switched(write_offsets_per_s=12.0, removable=False),
    AlertKind.MIGRATION_SWITCH_OFF_PLAN: progress(verdict=MigrationVerdict.LATE, reason="E is late."),
    AlertKind.MIGRATION_ACKS_AT_RISK: progress(acks="1", at_risk_offsets=120),
    AlertKind.MIGRATION_MIRROR_BEHIND: progress(method="mirrored", mirror_lag_offsets=1_000, mirror_eta_s=None),
    AlertKind.MIGRATION_ORIGIN_REMOVABLE: switched(),
}

# Statuses of ticks two minutes apart; the last tick fires an alert of the kind.
SCENES: dict[AlertKind, list[list[ThrottleStatus]]] = {
    AlertKind.THROTTLE_BELOW_LEADER_WRITE: [[status(1, LEADER, 3, 4, partition())]],
    AlertKind.THROTTLE_BELOW_INBOUND: [[status(3, FOLLOWER, 3, 4, partition())]],
    AlertKind.THROTTLE_LEFT_BEHIND: [[status(1, LEADER, 9, 4, RESTING, limited=0, throttle_source="broker")]],
    AlertKind.THROTTLE_AT_RISK: [
        [LISTED, status(1, FOLLOWER, 9, 0, limited=0, takeover=replace(RISK, bytes_per_s=6 * MB))]
    ],
    AlertKind.LEADER_UNTHROTTLED: [[LISTED, status(2, LEADER, None, 4, partition(1, leader=2))]],
    AlertKind.REASSIGNMENT_WITHOUT_THROTTLE: [[status(2, LEADER, None, 0, UNLISTED, limited=0, free=1)]],
    AlertKind.REASSIGNMENT_STALLED: [[status(3, FOLLOWER, 9, 4, partition(stalled=True), stall="not_fetching")]],
    AlertKind.ETA_SLIPPING: [[replace(LISTED, eta_s=eta_s)] for eta_s in (100.0, 1000.0)],
    AlertKind.ISR_SHRINK_DURING_MOVE: [
        [status(2, FOLLOWER, None, 0, limited=0, **{**LOST, "lost_moving_replicas": 1})]
    ],
    AlertKind.UNDER_REPLICATED: [[status(2, FOLLOWER, None, 0, limited=0, alive=False, **LOST)]],
    AlertKind.LEADER_IMBALANCE: [[]],
    AlertKind.PREFERRED_LEADER_UNAVAILABLE: [[]],
    AlertKind.LOAD_OUT_OF_BAND: [[]],
    AlertKind.HOT_BROKER: [[]],
    AlertKind.SLOW_BROKER: [[]],
    AlertKind.CAPACITY_AT_RISK: [[]],
    **{kind: [[], [], []] for kind in MIGRATIONS},
    AlertKind.NO_DATA: [[status(1, LEADER, 9, None, partition(write_bytes_per_s=None))]],
    AlertKind.STORE_UNWRITABLE: [[]],
}
BALANCES = {
    AlertKind.LEADER_IMBALANCE: [balance(2, 100, 30)],
    AlertKind.PREFERRED_LEADER_UNAVAILABLE: [balance(2, 100, unavailable=30, alive=False)],
}
EVEN = dict.fromkeys(range(1, 11), 20.0)
LOADS = {
    # Only broker 2 is out of band: the mean is 20.40 MB/s.
    AlertKind.LOAD_OUT_OF_BAND: loads({**EVEN, 2: 24.0}),
    AlertKind.HOT_BROKER: loads({**EVEN, 2: 24.0}, network_in_capacity=29 * MB),
    AlertKind.SLOW_BROKER: loads(EVEN, rounds={2: 7}, flush_s={2: 2.5}),
}
RISKS = {AlertKind.CAPACITY_AT_RISK: [CapacityRisk("broker 2", 3, "network_out", 118 * MB, 100 * MB)]}
# What a terminal shows below the first line, of the kinds whose text is theirs alone.
TEXTS = {
    AlertKind.THROTTLE_LEFT_BEHIND: [
        "No reassignment is running, but there is still a throttle of 9.00 MB/s on broker(s) 1 "
        "and throttled replica lists that name t-0.",
        "Do: remove what is left, or replicas that fall behind later catch up no faster than this",
        "  $ headroom throttle clear --execute",
    ],
    AlertKind.THROTTLE_AT_RISK: [
        "If broker 1 came to lead t-9, its throttle of 9.00 MB/s would be 1.00 MB/s too low: "
        "it would have to send 10.00 MB/s.",
        "throttle 9.00 MB/s; in-sync followers use 2.00 MB/s; all followers require 4.00 MB/s; still to copy 10.0 MB",
        "  t-0: writes 2.00 MB/s x 2 follower(s), 1 in sync; leader 1",
        # 10 MB in bursts of the quota, and what is written meanwhile.
        "Do: raise the throttle to 12.00 MB/s (12000000); the move then finishes in ",
        "Note: not urgent: the move goes on as long as no leader switches",
        "  $ headroom throttle apply --rate 12000000 --brokers 1 --raise-only --execute",
    ],
    AlertKind.LEADER_UNTHROTTLED: [
        "Broker 2 as leader sends t-1 to new replicas without a limit: the move is throttled, but it has no rate.",
        "throttle none; in-sync followers use 2.00 MB/s; all followers require 4.00 MB/s; still to copy 10.0 MB",
        "  t-1: writes 2.00 MB/s x 2 follower(s), 1 in sync; leader 2",
        "Do: set the throttle to 9.00 MB/s (9000000)",
        "Note: only if that is too much; a rate must exceed 4.00 MB/s",
        "  $ headroom throttle apply --rate 9000000 --brokers 2 --execute",
    ],
    AlertKind.REASSIGNMENT_WITHOUT_THROTTLE: [
        "1 partition(s) move without a throttle, as fast as brokers and network go; to limit it, take more than "
        "4.00 MB/s.",
        "Do: nothing, unless it is too fast: a throttle must exceed 4.00 MB/s, what broker 2 sends",
    ],
    AlertKind.REASSIGNMENT_STALLED: [
        "The move makes no progress: broker 3 as destination copies nothing of t-0 (the broker does not fetch it).",
        "throttle 9.00 MB/s; in-sync followers use 2.00 MB/s; all followers require 4.00 MB/s; still to copy 10.0 MB",
        "  t-0: writes 2.00 MB/s x 2 follower(s), 1 in sync; leader 1",
        "Do: look at the disk and the log of broker 3",
    ],
    # 08:02:00 and 1000 s; 08:00:00 and 100 s.
    AlertKind.ETA_SLIPPING: [
        "The move is expected to finish at 08:18:40 UTC, 17 min later than was expected first (08:01:40 UTC).",
        "Do: compare what leaders write now with what they wrote at the start; a higher throttle shortens the rest",
    ],
    AlertKind.ISR_SHRINK_DURING_MOVE: [
        "Broker 2 has fallen behind: 1 of its replicas, of partitions that are moving, none of them a new one, "
        "out of the ISR (t-0).",
        "Do: wait if it has just come back, its replicas then catch up by themselves; otherwise look at the disk and "
        "the log of broker 2",
    ],
    AlertKind.UNDER_REPLICATED: [
        "Broker 2 is down: 2 of its replicas, none of them a new one, out of the ISR (u-0 and 1 more).",
        "Do: bring broker 2 back, its replicas then catch up by themselves; "
        "only if it cannot come back, move them to other brokers (headroom plan --drain 2 makes the plan)",
    ],
    AlertKind.LEADER_IMBALANCE: [
        "Broker 2 does not lead 30 of the 100 partitions that prefer it, and could (30 %, threshold 10 %); "
        "8.00 MB/s are written to it, and 10.00 MB/s would be if all preferred leaders led.",
        "Do: elect the preferred leaders of 700 partitions in 4 batches, at a quiet time: first of 2 partition(s) ",
        "  $ headroom elections --execute",
    ],
    AlertKind.LOAD_OUT_OF_BAND: [
        "Broker 2 receives 24.00 MB/s, 17.6 % above its share of 20.40 MB/s.",
        "Do: propose the fewest changes that bring broker 2 into band; the command changes nothing itself",
        "  $ headroom balance propose --until-in-band 2 --dir headroom-balance-20270115-080000",
    ],
    AlertKind.HOT_BROKER: [
        "Broker 2 receives 24.00 MB/s, 82.8 % of its capacity and above its limit of 23.20 MB/s "
        "(its share: 20.40 MB/s).",
        "Do: propose the fewest changes that bring broker 2 into band; the command changes nothing itself",
        "  $ headroom balance propose --until-in-band 2 --dir headroom-balance-20270115-080000",
    ],
    AlertKind.SLOW_BROKER: [
        "Broker 2 is slow: its log flushes take up to 2.5 s (99.9th percentile), and it was slow in 7 minutes more "
        "than not.",
        "Do: look at the disk and the log of broker 2; until it is well, move nothing to it, and let it give its "
        "leaders away (headroom balance propose --elections-only)",
    ],
    AlertKind.CAPACITY_AT_RISK: [
        "If broker 2 were lost, broker 3 would have to send 118 MB/s: 18.00 MB/s above its limit of 100 MB/s.",
        "Do: spread what brokers send more evenly, or add brokers; ",
        "  $ headroom balance --what-if lose:2",
        "  $ headroom balance propose",
    ],
    AlertKind.PREFERRED_LEADER_UNAVAILABLE: [
        "Broker 2 is down: it cannot lead 30 of the 100 partitions that prefer it.",
        "Do: bring broker 2 back, its replicas then catch up by themselves; "
        "only if it cannot come back, move them to other brokers (headroom plan --drain 2 makes the plan)",
    ],
}


def event_of_kind(kind: AlertKind) -> AlertEvent:
    """The event that the last tick of a kind's scene brings."""
    holds = ("hold_s", "stalled_s", "no_data_s", "under_replicated_s", "left_behind_s", "imbalance_s")
    of_loads = ("out_of_band_s", "hot_broker_s", "slow_broker_s", "at_risk_s")
    now = dict.fromkeys((*holds, *of_loads), 0.0)
    origin = MigrationSettings(origin=OriginSettings(bootstrap_servers="origin:9092"))
    settings = Settings(cluster=ClusterSettings(name="c"), alerts=AlertSettings(**now), migration=origin)
    # Ticks come as far apart as they are.
    passed_ms = 0
    engine = AlertEngine(settings, lambda: TICK_MS, elapsed_ms=lambda: passed_ms)
    engine.inputs("c").elections = PLAN_SUMMARY
    if kind is AlertKind.STORE_UNWRITABLE:
        engine.update_store_trouble("/data cannot be written (No space left on device)")
    if kind in LOADS:
        engine.inputs("c").loads = LOADS[kind]
    engine.update_capacity_risks("c", RISKS.get(kind, []))
    engine.inputs("c").balances = Dated(BALANCES.get(kind, []), TICK_MS)
    events: list[AlertEvent] = []
    for number, statuses in enumerate(SCENES[kind]):
        passed_ms = number * (10_000 if kind in MIGRATIONS else 120_000)
        tick_ms = TICK_MS + passed_ms
        events += engine.evaluate("c", tick_ms, statuses)
        events += engine.evaluate_migrations("c", tick_ms, [MIGRATIONS[kind]] if kind in MIGRATIONS else None)
    (event,) = [event for event in events if (event.kind, event.state) == (kind.value, "firing")]
    return event


EVENTS = {kind: event_of_kind(kind) for kind in AlertKind}
every_kind = pytest.mark.parametrize("kind", AlertKind, ids=lambda kind: kind.value)


@every_kind
def test_a_terminal_shows_what_and_what_to_do(kind: AlertKind) -> None:
    head, *lines = render_event(EVENTS[kind]).splitlines()
    assert f" {kind.value}  cluster c, " in head
    for text, line in zip(TEXTS.get(kind, []), lines, strict=False):
        assert line.startswith(f"  {text}")
    assert len(lines) >= len(TEXTS.get(kind, []))
    assert any(line.startswith("  Do: ") for line in lines)
    assert "None" not in "".join(lines)


@every_kind
def test_a_resolution_repeats_the_summary_of_the_alert(kind: AlertKind) -> None:
    resolved = replace(EVENTS[kind], state="resolved")
    assert f"Resolved. It was: {resolved.summary}." in render_event(resolved)
    assert f"It was: {resolved.summary}" in json.dumps(alert_blocks(resolved, Links()), ensure_ascii=False)
    assert "resolved at" in change_text(resolved)


@every_kind
def test_slack_says_what_and_what_to_do(kind: AlertKind) -> None:
    event = EVENTS[kind]
    said = json.dumps(alert_blocks(event, Links()), ensure_ascii=False)
    recommendation = json.loads(event.recommendation)
    assert event.summary in said
    assert recommendation["reason"] or recommendation["commands"]
    assert (recommendation["reason"] or "") in said
    assert all(command in said for command in recommendation["commands"][:1])
    assert event.summary in plain_text(event)
    assert event.summary in change_text(event)
    # Rates are told where it is about a throttle of a broker.
    about_broker_and_role = event.subject.endswith((" as leader", " as destination"))
    assert ("*Throttle now*" in said) is ("throttle now" in change_text(event)) is about_broker_and_role
    assert "None" not in said


def test_alertmanager_gets_each_kind_as_texts_under_labels_that_stay() -> None:
    instance = Scripted()
    with serving(instance) as url:
        settings = AlertmanagerSettings(url, None, resend_s=60, timeout_s=60)
        receiver = AlertmanagerReceiver(settings, lambda: None, Links(), lambda: TICK_MS)
        for event in EVENTS.values():
            receiver.deliver(event, "", False)
    posted = [alert for (alert,) in instance.bodies()]
    assert [alert["labels"] for alert in posted] == [labels(event) for event in EVENTS.values()]
    assert len({json.dumps(alert["labels"]) for alert in posted}) == len(AlertKind)
    for alert, event in zip(posted, EVENTS.values(), strict=True):
        assert alert["annotations"]["summary"] == event.summary
        assert all(isinstance(text, str) and text for text in alert["annotations"].values())


def test_a_web_server_gets_each_kind_with_its_evidence_and_advice_as_objects() -> None:
    sink = Scripted()
    with serving(sink) as url:
        receiver = WebhookReceiver(WebhookSettings(url), lambda: None, Links(), lambda: TICK_MS)
        for event in EVENTS.values():
            receiver.deliver(event, "", False)
    assert [body["event"] for body in sink.bodies()] == [event.as_objects() for event in EVENTS.values()]
    assert all(body["event"]["evidence"]["partitions"] is not None for body in sink.bodies())
