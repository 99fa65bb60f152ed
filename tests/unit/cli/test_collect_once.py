"""``headroom collect --once`` and other commands that end in one clear line and a code, not in a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError

from headroom.cli.main import run
from headroom.cli.watch.collect import collect_once, with_time_for_one_tick
from headroom.cluster.collector.collector import TickReport
from headroom.cluster.collector.publisher import PublishError
from headroom.cluster.connection.failover import MetadataError
from headroom.schemas.config import CollectSettings, Settings
from headroom.schemas.errors import HeadroomError


class OneTick:
    """A collector whose tick has a given outcome."""

    def __init__(self, outcome: TickReport | Exception) -> None:
        self._outcome = outcome
        self.closed = False

    def open(self) -> None:
        """Do nothing: there is no cluster."""

    def tick(self) -> TickReport:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def close(self) -> None:
        self.closed = True


def _report(*unanswered: dict[str, Any]) -> TickReport:
    return TickReport(1, 0.1, {}, {}, list(unanswered), None)


def test_a_tick_with_the_rows_of_all_brokers_is_no_error() -> None:
    collector: Any = OneTick(_report())
    collect_once(collector)
    assert collector.closed


def test_a_tick_without_the_rows_of_a_broker_is_an_error_with_the_reason() -> None:
    """As with a wrong password of JMX."""
    collector: Any = OneTick(_report({"broker": 2, "reason": "JMX broker2:9999: Authentication failed"}))
    with pytest.raises(HeadroomError, match="broker 2: JMX broker2:9999: Authentication failed"):
        collect_once(collector)
    assert collector.closed


@pytest.mark.parametrize(("configured_s", "timeout_s"), [(0.0, 10.0), (2.5, 2.5)])
def test_a_single_tick_waits_longer_than_one_of_many(configured_s: float, timeout_s: float) -> None:
    """With the 0.8 s of a tick a second, a busy machine's first read by JMX was given up."""
    settings = Settings(collect=CollectSettings(interval_s=1.0, broker_timeout_s=configured_s))
    assert with_time_for_one_tick(settings).collect.timeout_s() == timeout_s


@pytest.mark.parametrize(
    "error",
    [
        MetadataError("reassignments: broker 1: ClusterAuthorizationFailedError"),
        PublishError("tick_end was not acknowledged (TopicAuthorizationFailedError)"),
        ClusterAuthorizationFailedError(),
    ],
)
def test_a_right_that_is_missing_is_one_error_that_names_the_check(error: Exception) -> None:
    collector: Any = OneTick(error)
    with pytest.raises(HeadroomError) as printed:
        collect_once(collector)
    assert (str(error) or "ClusterAuthorizationFailedError") in printed.value.rule
    assert "`headroom check`" in printed.value.remedy
    assert collector.closed


@pytest.mark.parametrize("command", ["collect", "watch", "run watch"])
@pytest.mark.parametrize("seconds", ["nan", "-1", "0", "inf", "1e300"])
def test_a_time_that_is_none_is_wrong_use(command: str, seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--for", seconds]) == 2
    assert "Invalid value for '--for'" in capsys.readouterr().err


def test_a_folder_of_brokers_that_is_a_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for folder, code in ((file, 2), (file / "below", 1)):
        assert run(["cluster", "up", "--dir", str(folder)]) == code
        shown = capsys.readouterr().err
        assert "Traceback" not in shown
        assert str(file) in shown


def test_a_password_file_of_a_user_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headroom.toml").write_text(
        '[cluster]\nbootstrap_servers = "localhost:1"\nsecurity_protocol = "SASL_PLAINTEXT"\n'
        'sasl_mechanism = "PLAIN"\nsasl_username = "u"\nsasl_password_file = "~nosuchuser/x"\n'
    )
    assert run(["reassignments"]) == 1
    assert "cannot read ~nosuchuser/x: there is no such user" in capsys.readouterr().err


@pytest.mark.parametrize("starts", ["9999-12-31T23:59Z", "9999-12-31T22:59:59.5Z"])
def test_a_silence_that_ends_after_all_dates_is_wrong_use(
    starts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    given = ["alerts", "silence", "--kind", "no_data", "--for", "1h", "--note", "n", "--starts", starts]
    assert run(given) == 2
    assert "It would end after the year 9999." in capsys.readouterr().err
    assert not (tmp_path / "alerts").exists()
