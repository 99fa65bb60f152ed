"""``headroom alerts ack|silence|silences|unsilence`` over real tables."""

from __future__ import annotations

import getpass
import json
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headroom.cli.alerts.command import EXIT_NOT_CURRENT, alerts
from headroom.schemas.environment import USER
from headroom.schemas.errors import HeadroomError
from headroom.streaming.tables.suppressions import append_record
from tests.unit.alerts.delivery.test_suppression import silence
from tests.unit.cli.alerts.test_command import _event, _step, _written, store

__all__ = ["store"]

HOUR_MS = 3_600_000


def run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, arguments, catch_exceptions=False)


def reported(*arguments: str) -> Any:
    done = run(*arguments, "--format", "json")
    # No watch runs.
    assert done.exit_code in (0, EXIT_NOT_CURRENT), done.output
    return json.loads(done.stdout)


def message(alert_id: str, state: str, tick_ms: int, kind: str = "no_data") -> dict[str, Any]:
    """An event that can be printed."""
    recommendation = '{"throttle_bytes_per_s": null, "reason": null, "commands": []}'
    return {
        **_event(alert_id, state, tick_ms, kind),
        "evidence": '{"broker_id": null}',
        "recommendation": recommendation,
    }


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def firing(store: Path) -> Path:
    """Two alerts that fire, one that is pending and one that is resolved."""
    _written(store, message("aa11", "firing", 1), message("ab22", "firing", 2, "reassignment_stalled"))
    _written(store, message("cc33", "pending", 3), message("dd44", "firing", 4), message("dd44", "resolved", 5))
    return store


@pytest.mark.usefixtures("firing")
def test_an_acknowledgement_is_shown_with_the_alert() -> None:
    shown_then = run("ack", "aa", "--note", "raising it", "--by", "anna").stdout
    assert shown_then.startswith("Acknowledged by anna: aa11 critical no_data, cluster orders, broker 2 as leader.\n")
    shown = {alert["alert_id"]: alert for alert in reported()}
    assert shown["aa11"]["acknowledged_by"] == "anna"
    assert abs(shown["aa11"]["acknowledged_ms"] - now_ms()) < 60_000
    assert (shown["ab22"]["acknowledged_by"], shown["ab22"]["acknowledged_ms"]) == (None, None)
    assert re.search(r"id aa11\n.*\n  Acknowledged by anna at \d{4}-.* UTC: raising it$", run().stdout, re.MULTILINE)


@pytest.mark.usefixtures("firing")
def test_the_author_is_the_login_name_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reported("ack", "aa11")["by"] == getpass.getuser()
    monkeypatch.setenv(USER, "anna")
    assert reported("ack", "aa11")["by"] == "anna"
    monkeypatch.delenv(USER)
    monkeypatch.setattr(getpass, "getuser", lambda: {}["uid"])
    with pytest.raises(HeadroomError, match="--by: is needed"):
        run("ack", "aa11")


@pytest.mark.parametrize(
    ("alert_id", "message"),
    [
        ("zz", "alert zz: is not there"),
        ("", "alert : is not there"),
        ("a", "alert a: may be any of aa11, ab22. Give more of the id."),
        ("dd44", "alert dd44: is resolved, so there is nothing to acknowledge"),
    ],
)
@pytest.mark.usefixtures("firing")
def test_an_id_that_names_no_one_alert_is_refused(alert_id: str, message: str) -> None:
    with pytest.raises(HeadroomError) as error:
        run("ack", alert_id)
    assert str(error.value).startswith(message)


def test_without_any_alert_there_is_none_to_acknowledge(store: Path) -> None:
    with pytest.raises(HeadroomError, match="alert aa: is not there"):
        run("ack", "aa")
    assert not (store / "alerts").exists()


def test_a_silence_that_no_watch_would_see_is_refused(store: Path) -> None:
    with pytest.raises(HeadroomError, match="alerts/events: is not there, so no watch would see the silence"):
        run("silence", "--kind", "no_data", "--for", "2h", "--note", "n")
    assert not (store / "alerts").exists()


def test_a_resolved_alert_cannot_be_acknowledged(firing: Path) -> None:
    run("ack", "aa11")
    _written(firing, message("aa11", "resolved", 6))
    (alert,) = [alert for alert in reported("--all") if alert["alert_id"] == "aa11"]
    assert (alert["acknowledged_by"], alert["silenced_until_ms"]) == (None, None)


@pytest.mark.usefixtures("firing")
def test_a_silence_shows_its_matching_alerts_and_is_shown_with_them() -> None:
    done = reported("silence", "--kind", "no_data", "--for", "2h", "--note", "agents", "--by", "anna")
    assert (done["covers"], done["state"], done["by"], done["note"]) == (["aa11"], "holds", "anna", "agents")
    assert done["ends_ms"] - done["starts_ms"] == 2 * HOUR_MS
    silenced = {alert["alert_id"]: alert["silenced_until_ms"] for alert in reported()}
    assert silenced == {"aa11": done["ends_ms"], "cc33": done["ends_ms"], "ab22": None}
    assert run().stdout.count("  Silenced until 2") == 2


@pytest.mark.usefixtures("firing")
def test_a_silence_by_subject_is_printed_as_text() -> None:
    text = run("silence", "--subject", "broker 2 *", "--cluster", "orders", "--for", "90", "--note", "n").stdout
    head, covers, *alerts_said = text.splitlines()
    assert re.fullmatch(r"Silence [0-9a-f]{16}, from now until .* UTC: cluster orders, subject broker 2 \*\.", head), (
        head
    )
    assert covers == "It matches 2 of the alerts that fire now:"
    assert alerts_said == [
        "  ab22 critical reassignment_stalled, cluster orders, broker 2 as leader",
        "  aa11 critical no_data, cluster orders, broker 2 as leader",
    ]


@pytest.mark.usefixtures("firing")
def test_a_silence_of_a_broker_as_a_whole_says_what_it_does_not_match() -> None:
    text = run("silence", "--subject", "broker 2", "--for", "90", "--note", "n").stdout
    assert "It matches 0 of the alerts that fire now." in text
    assert text.endswith('and are matched by --subject "broker 2 as *".\n')
    assert "other subjects" not in run("silence", "--subject", "broker 2*", "--for", "90", "--note", "n").stdout


@pytest.mark.usefixtures("firing")
def test_a_future_silence_is_planned_and_matches_nothing_yet() -> None:
    starts = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(hours=3)
    at = f"{starts:%Y-%m-%dT%H:%M:%SZ}"
    done = reported("silence", "--cluster", "orders", "--starts", at, "--for", "4h", "--note", "n")
    assert (done["state"], done["covers"]) == ("planned", ["ab22", "aa11"])
    assert done["starts_ms"] == starts.timestamp() * 1000
    assert {alert["silenced_until_ms"] for alert in reported()} == {None}
    text = run("silence", "--kind", "no_data", "--starts", at, "--for", "4h", "--note", "n").stdout
    assert "It would match, if they still fire then, 1 of the alerts that fire now:" in text


def test_a_silence_that_began_before_is_active_from_now_on(firing: Path) -> None:
    before = f"{datetime.now(timezone.utc) - timedelta(hours=1):%Y-%m-%dT%H:%MZ}"
    done = reported("silence", "--cluster", "a", "--starts", before, "--for", "4h", "--note", "n")
    assert abs(done["starts_ms"] - now_ms()) < 60_000
    assert 2.9 < (done["ends_ms"] - done["starts_ms"]) / HOUR_MS < 3.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--for", "2h", "--note", "n"], "Give at least one of --cluster, --kind and --subject"),
        (["--cluster", "a", "--note", "n"], "Missing option '--for'"),
        (["--cluster", "a", "--for", "2h"], "Missing option '--note'"),
        (["--cluster", "a", "--for", "long", "--note", "n"], "is not seconds or a time such as 90s, 30m or 1h30m"),
        (["--cluster", "a", "--for", "0", "--note", "n"], "'0' is not more than nothing and at most 366 days"),
        (["--cluster", "a", "--for", "-1", "--note", "n"], "'-1' is not seconds or a time such as 90s, 30m or 1h30m"),
        (["--cluster", "a", "--for", "nan", "--note", "n"], "'nan' is not seconds or a time such as 90s, 30m or 1h30m"),
        (["--cluster", "a", "--for", "400d", "--note", "n"], "'400d' is not more than nothing and at most 366 days"),
        (["--kind", "nodata", "--for", "2h", "--note", "n"], "'nodata' is not one of"),
        (
            ["--cluster", "a", "--for", "2h", "--note", "n", "--starts", "soon"],
            "'soon' is not a date and time. Write it as 2026-11-22T22:00Z.",
        ),
        (["--cluster", "a", "--for", "2h", "--note", "n", "--starts", "2020-01-01T00:00Z"], "It would be over"),
    ],
)
def test_wrong_use_of_silence_is_an_error_and_stores_nothing(store: Path, arguments: list[str], message: str) -> None:
    done = run("silence", *arguments)
    assert (done.exit_code, message in " ".join(done.output.split())) == (2, True), done.output
    assert not (store / "alerts" / "marks").exists()


def test_without_a_store_silences_are_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path / "elsewhere"))
    with pytest.raises(HeadroomError, match="elsewhere: is not there"):
        run("silences", "--format", "json")


@pytest.mark.usefixtures("firing")
def test_silences_are_listed_and_ended() -> None:
    assert run("silences").stdout == "No silence was ever created.\n"
    first = reported("silence", "--cluster", "orders", "--for", "2h", "--note", "disks", "--by", "anna")["mark_id"]
    second = reported("silence", "--kind", "no_data", "--starts", "2099-01-01", "--for", "1h", "--note", "n")["mark_id"]
    listed = [(s["mark_id"], s["state"], s["cluster"], s["kind"]) for s in reported("silences")]
    assert listed == [(first, "holds", "orders", None), (second, "planned", None, "no_data")]
    assert re.search(
        rf"{first} +holds +cluster orders .* UTC \(in (2 h|1 h 59 min)\) +anna +disks", run("silences").stdout
    )
    assert f"Ended silence {first}: cluster orders." in run("unsilence", first[:8]).stdout
    assert [s["mark_id"] for s in reported("silences")] == [second]
    assert f"Cancelled silence {second}" in run("unsilence", second).stdout
    assert "2 in all have ended (--all shows them)" in run("silences").stdout
    assert [s["state"] for s in reported("silences", "--all")] == ["ended", "ended"]
    with pytest.raises(HeadroomError, match=f"silence {first}: has ended at"):
        run("unsilence", first)
    with pytest.raises(HeadroomError, match="silence zz: is not there"):
        run("unsilence", "zz")


@pytest.mark.usefixtures("firing")
def test_an_ended_silence_matches_nothing() -> None:
    made = reported("silence", "--cluster", "orders", "--for", "2h", "--note", "n")
    assert reported("unsilence", made["mark_id"])["state"] == "ended"
    assert {alert["silenced_until_ms"] for alert in reported()} == {None}


def test_a_window_of_the_settings_is_shown(firing: Path) -> None:
    window = (
        'days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]\nat = "00:00"\nlasts = "1d"\nkinds = ["no_data"]\n'
    )
    (firing / "headroom.toml").write_text(f"[[alerts.maintenance]]\n{window}")
    assert [alert["silenced_until_ms"] is None for alert in reported()] == [False, True, False]


def test_silenced_events_are_not_undelivered(firing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_NOTIFY__LOG", "true")
    # The receiver is not new.
    _written(firing, _step(message("ee55", "firing", 0), "delivered"), table="deliveries")
    assert [one["alert_id"] for one in reported("--undelivered")] == ["aa11", "ab22", "dd44", "dd44"]
    run("silence", "--kind", "no_data", "--for", "2h", "--note", "n")
    assert [one["alert_id"] for one in reported("--undelivered")] == ["ab22"]
    run("unsilence", reported("silences")[0]["mark_id"])
    steps = [_step(message("dd44", "firing", 4), "silenced"), _step(message("dd44", "resolved", 5), "silenced")]
    _written(firing, *steps, table="deliveries")
    assert [one["alert_id"] for one in reported("--undelivered")] == ["aa11", "ab22"]


def test_suppressions_that_cannot_be_read_or_written_are_an_error(firing: Path) -> None:
    (firing / "alerts" / "marks").write_text("something else")
    for arguments in (("ack", "aa11"), (), ("silences",)):
        with pytest.raises(HeadroomError, match=r"alerts/marks: is damaged: its file . is a file"):
            run(*arguments)


@pytest.mark.usefixtures("firing")
def test_options_before_a_command_are_refused_and_not_forgotten() -> None:
    done = run("--format", "json", "ack", "aa11")
    assert done.exit_code == 2
    assert "Options go after the command: headroom alerts ack ..." in done.output
    assert run("nosuch").exit_code == 2


@pytest.mark.parametrize("command", ["ack", "silence", "silences", "unsilence"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example:  headroom alerts {command}" in run(command, "--help").stdout


def test_a_silence_that_ends_after_all_dates_is_shown_with_the_others(firing: Path) -> None:
    """A silence of an older version, which accepted any start."""
    # 9999-12-31T23:59Z and an hour: there is no such date.
    ends_ms = 253_402_304_340_000
    append_record(str(firing / "alerts" / "marks"), silence("far", 0, ends_ms, kind="no_data"))
    assert f"{ends_ms} ms after 1970" in run("silences").stdout
    assert [mark["ends_ms"] for mark in reported("silences")] == [ends_ms]
    assert f"Silenced until {ends_ms} ms after 1970" in run().stdout
    assert f"It was until {ends_ms} ms after 1970." in run("unsilence", "far").stdout
