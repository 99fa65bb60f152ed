"""Scores of alerts and advice in scenes of large moves, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.groups.large_moves.scenes.restart import Downtime
from benchmarks.groups.large_moves.scoring.advice import CommandRotation, FollowedAdvice, lowered, resolve_limit_s
from benchmarks.groups.large_moves.scoring.claims import broker_claims
from benchmarks.groups.large_moves.scoring.scoring import Score, ScoredAlert, score
from benchmarks.groups.large_moves.scoring.truth import (
    GRACE_S,
    Cause,
    Claim,
    PrintedAlert,
    all_of,
    blames_no_switch,
    has_severity,
    near,
    shows_extent,
)
from benchmarks.groups.large_moves.stage.shell import Shell, tool_scripts
from benchmarks.results import CHECKOUT
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role

LEADER, LOST = AlertKind.THROTTLE_BELOW_LEADER_WRITE, AlertKind.UNDER_REPLICATED


def announcement(
    at_s: float,
    alert_id: str = "1",
    kind: AlertKind = LEADER,
    subject: str = "broker 1 as leader",
    severity: str = "warning",
    summary: str = "",
    commands: tuple[str, ...] = (),
    **evidence: Any,
) -> PrintedAlert:
    return PrintedAlert(
        alert_id, kind.value, subject, severity, at_s, summary, evidence, {"action": "", "commands": list(commands)}
    )


def low(from_s: float = 100, until_s: float | None = 200, required: bool = True, **claim: Any) -> Cause:
    return Cause("low", (Claim(LEADER, r"broker (1|2) as leader", **claim),), from_s, 30, required, until_s)


def false(scored: Score) -> list[ScoredAlert]:
    return [alert for alert in scored.alerts if alert.wrong is not None]


def dead(from_s: float = 100, **claim: Any) -> Cause:
    return Cause("dead", (Claim(LOST, r"broker 4( as .*)?", **claim),), from_s, 60)


@pytest.mark.parametrize(
    ("one", "true", "detected"),
    [
        (announcement(100), True, True),
        (announcement(130), True, True),
        # True at its time, and too late: 30 s were given.
        (announcement(130.1), True, False),
        (announcement(200 + GRACE_S), True, False),
        (announcement(200.1 + GRACE_S), False, False),
        (announcement(99.9), False, False),
        (announcement(110, subject="broker 2 as leader"), True, True),
        (announcement(110, subject="broker 3 as leader"), False, False),
        # The pattern is for the whole subject: broker 12 is another one.
        (announcement(110, subject="broker 12 as leader"), False, False),
        (announcement(110, kind=AlertKind.THROTTLE_BELOW_INBOUND), False, False),
    ],
)
def test_an_alert_is_true_during_its_cause_and_detects_it_if_in_time(
    one: PrintedAlert, true: bool, detected: bool
) -> None:
    scored = score([low()], [one])
    assert [alert.wrong is None for alert in scored.alerts] == [true]
    assert scored.missing == (() if detected else ("low",))


def test_an_info_neither_pages_nor_announces() -> None:
    scored = score([low()], [announcement(110, severity="info")])
    assert scored.alerts == ()
    assert scored.missing == ("low",)


def test_every_alert_beyond_the_first_of_a_cause_is_doubled() -> None:
    fired = [
        announcement(110, "1"),
        announcement(112, "2", subject="broker 2 as leader"),
        announcement(115, "3", LOST, "broker 4"),
    ]
    scored = score([low(), dead()], fired)
    assert [alert.first.alert_id for alert in scored.doubled] == ["2"]
    assert false(scored) == []
    assert scored.missing == ()


def test_an_update_of_an_alert_is_no_second_alert() -> None:
    scored = score([low()], [announcement(110), announcement(120, severity="critical")])
    assert len(scored.alerts) == 1
    assert scored.doubled == ()


def test_a_cause_that_need_not_be_announced_is_never_missing_and_makes_an_alert_true() -> None:
    cause = low(required=False)
    assert score([cause], []).missing == ()
    assert false(score([cause], [announcement(110)])) == []


def test_a_wrong_number_makes_an_alert_false_and_its_cause_missing() -> None:
    # 15 % of 6.0 MB/s: 5.1 to 6.9.
    cause = low(check=near("required_bytes_per_s", 6e6, 0.15))
    assert false(score([cause], [announcement(110, required_bytes_per_s=5.1e6)])) == []
    scored = score([cause], [announcement(110, required_bytes_per_s=5.0e6)])
    assert [alert.wrong for alert in false(scored)] == ["required_bytes_per_s is 5000000.0, not 5100000 to 6900000"]
    assert scored.missing == ("low",)
    assert score([cause], [announcement(110, required_bytes_per_s=None)]).missing == ("low",)


def test_an_update_with_a_wrong_number_makes_the_alert_false_but_its_cause_is_detected() -> None:
    cause = low(check=near("required_bytes_per_s", 6e6, 0.15))
    fired = [announcement(110, required_bytes_per_s=6e6), announcement(120, required_bytes_per_s=9e6)]
    scored = score([cause], fired)
    assert len(false(scored)) == 1
    assert scored.missing == ()


def test_a_small_alert_that_stays_as_it_is_does_not_announce_the_large_fault() -> None:
    small = Cause("small", (Claim(LOST, "broker 4"),), 100, 45)
    large = Cause("large", (Claim(LOST, "broker 4", shows_extent(50)),), 150, 54)
    first = announcement(120, "1", LOST, "broker 4", summary="Broker 4 has fallen behind: 1 of its replicas")
    assert score([small, large], [first]).missing == ("large",)
    update = announcement(180, "1", LOST, "broker 4", summary="Broker 4 is gone: 221 of its replicas")
    another = announcement(180, "2", LOST, "broker 4", summary="Broker 4 is down: 221 of its replicas")
    for second in (update, another):
        scored = score([small, large], [first, second])
        assert (scored.missing, scored.doubled, false(scored)) == ((), (), [])
    # A second alert of the large fault is one too many.
    again = announcement(181, "3", LOST, "broker 4", summary="Broker 4 is down: 221 of its replicas")
    assert len(score([small, large], [first, another, again]).doubled) == 1


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("Broker 4 has fallen behind: 1 of its replicas", False),
        ("copies nothing of t-60, t-61, t-62 (the broker does not fetch it)", False),
        ("copies nothing of t-60, t-61, t-62 and 57 more (no throttle explains it)", True),
        ("copies nothing of t-0 (the broker is down)", True),
        # No count: part of a rate.
        ("is throttled to 5.60 MB/s", False),
    ],
)
def test_the_extent_is_the_number_in_a_summary(summary: str, shown: bool) -> None:
    assert shows_extent(50)(announcement(0, summary=summary)) is shown


def test_checks_find_the_first_thing_that_is_wrong() -> None:
    check = all_of(has_severity(Severity.CRITICAL), blames_no_switch)
    switched = announcement(0, severity="critical", summary="since the leader switch of t-0 (1 to 2)")
    assert check(announcement(0)) == "severity is warning, not critical"
    assert check(switched) == "a leader switch is blamed: since the leader switch of t-0 (1 to 2)"
    assert check(announcement(0, severity="critical", switch_tick_ms=5)) is not None
    assert check(announcement(0, severity="critical", switch_tick_ms=None)) is None


def test_a_rate_is_lowered_when_it_is_less_than_before_or_when_there_was_none() -> None:
    leader, follower = Role.LEADER, Role.FOLLOWER
    before = {(1, leader): 5.0, (1, follower): None, (2, leader): 3.0, (2, follower): 4.0, (3, leader): 1.0}
    # Broker 3 did not answer afterwards: nothing is known of it. A rate that was cleared limits nothing.
    after = {(1, leader): 4.0, (1, follower): 9.0, (2, leader): 3.0, (2, follower): None}
    assert lowered(before, after) == [(1, follower), (1, leader)]
    assert lowered(before, after, first_rate=True) == [(1, leader)]


def test_a_first_rate_is_lowering_unless_the_advice_is_to_set_one() -> None:
    one = announcement(0)
    for action, expected in (("raise_throttle", [(1, Role.LEADER)]), ("set_rate", [])):
        advised = PrintedAlert("1", one.kind, one.subject, "info", 0, "", {}, {"action": action})
        followed = FollowedAdvice(advised, "headroom", before={(1, Role.LEADER): None}, after={(1, Role.LEADER): 5.0})
        assert followed.lowered == expected


def test_an_alert_resolves_in_time_or_not() -> None:
    # 5 s without the condition, a tick of 1 s, and the 11 s that a quota remembers.
    limit_s = resolve_limit_s(5.0, 1.0)
    assert limit_s == 17.0
    for resolved_s, in_time in ((None, False), (117.0, True), (117.1, False), (99.0, True)):
        assert (
            FollowedAdvice(announcement(0), "kafka", done_s=100, limit_s=limit_s, resolved_s=resolved_s).resolves
            is in_time
        )


def test_headrooms_command_and_kafkas_lines_take_turns_kind_by_kind() -> None:
    rotation = CommandRotation()
    three = announcement(0, commands=("headroom throttle apply", "kafka-configs.sh a", "kafka-configs.sh b"))
    other = announcement(0, kind=LOST, commands=("headroom throttle clear", "kafka-configs.sh c"))
    assert rotation.lines(three) == ("headroom", ["headroom throttle apply"])
    assert rotation.lines(other) == ("headroom", ["headroom throttle clear"])
    assert rotation.lines(three) == ("kafka", ["kafka-configs.sh a", "kafka-configs.sh b"])
    assert rotation.lines(three) == ("headroom", ["headroom throttle apply"])


def test_the_only_command_is_run_every_time() -> None:
    rotation, cancel = (
        CommandRotation(),
        announcement(0, commands=("echo x > f && kafka-reassign-partitions.sh --cancel",)),
    )
    assert rotation.lines(cancel) == rotation.lines(cancel) == ("kafka", list(cancel.recommendation["commands"]))


def test_lines_run_in_a_shell_with_the_tools_on_its_path(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "shell")
    ran = shell.run("echo '{}' > plan.json && cat plan.json; echo wrong >&2; exit 3")
    assert (ran.code, ran.output) == (3, "{}\nwrong\n")
    for tool in ("kafka-configs.sh", "kafka-reassign-partitions.sh", "kafka-leader-election.sh", "headroom"):
        assert shell.run(f"command -v {tool}").output.strip() == str(tmp_path / "shell" / "bin" / tool)
    # No terminal: a command that asks before it acts ends with an error, as it would in a script.
    assert shell.run("read answer").code != 0


def test_headroom_in_that_shell_is_the_code_of_this_checkout(tmp_path: Path) -> None:
    ran = Shell(tmp_path).run("headroom throttle apply --rate nonsense --brokers 1")
    assert (ran.code, "--rate" in ran.output) == (2, True)
    # The folder of a shell is not that of the checkout.
    assert f"PYTHONPATH={CHECKOUT} " in tool_scripts()["headroom"]


def test_a_restarted_broker_has_replicas_out_of_sync_but_stalls_no_move() -> None:
    restarts = Cause(
        "restarts", broker_claims(4, stalled=Downtime(until_s=150).applies), 100, 0, required=False, until_s=180
    )

    def true(at_s: float, kind: AlertKind, subject: str) -> bool:
        return false(score([restarts], [announcement(at_s, kind=kind, subject=subject)])) == []

    assert true(150 + GRACE_S, AlertKind.REASSIGNMENT_STALLED, "broker 4 as destination")
    assert not true(150.1 + GRACE_S, AlertKind.REASSIGNMENT_STALLED, "broker 4 as destination")
    assert true(180 + GRACE_S, LOST, "broker 4")
    assert not true(180.1 + GRACE_S, LOST, "broker 4")
    assert not true(140, LOST, "broker 3")


def test_an_alert_that_fires_again_after_its_advice_was_followed_is_repaged() -> None:
    first = PrintedAlert("1", "throttle_below_leader_write", "broker 2 as leader", "warning", 0, "")
    followed = FollowedAdvice(first, "headroom", done_s=10)
    again = replace(first, alert_id="2", at_s=20)
    assert followed.is_repaged([first, again])
    others = [replace(again, at_s=5), replace(again, subject="broker 3 as leader"), replace(again, severity="info")]
    assert not followed.is_repaged([first, replace(first, at_s=20), *others])
