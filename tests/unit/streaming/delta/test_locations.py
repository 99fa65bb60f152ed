"""Places of tables that cannot be read or written, over a real file system and the real Delta library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from headroom.alerts.delivery.suppression import Suppressions
from headroom.cli.alerts.command import alerts
from headroom.cli.config.several_files import load_clusters
from headroom.cli.maintain.command import maintain
from headroom.cli.watch.pipeline import build_pipeline
from headroom.operations.check.local import local_store
from headroom.operations.check.result import CheckStatus
from headroom.schemas.errors import HeadroomError
from headroom.streaming.delta.locations import is_missing, require_present, require_writable
from headroom.streaming.tables.suppressions import SuppressionFollower, append_record
from tests.unit.alerts.delivery.test_suppression import silence
from tests.unit.cli.alerts.test_command import _event, _written
from tests.unit.fakes.users import without_root

SILENCE = silence()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store with an alert and a silence, where every user may look."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        folder.mkdir()
        folder.parent.chmod(0o755)
        monkeypatch.chdir(folder.parent)
        monkeypatch.setenv("HEADROOM_STORE__PATH", str(folder))
        monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "localhost:1")
        _written(folder, _event("a", "firing", 1))
        append_record(str(folder / "alerts" / "marks"), SILENCE)
        yield folder
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)


def _shown(*arguments: str) -> str:
    with without_root():
        return CliRunner().invoke(alerts, arguments, catch_exceptions=False).stdout


@pytest.mark.parametrize("hidden", [".", "alerts", "alerts/events", "alerts/events/_delta_log"])
def test_alerts_of_a_store_that_may_not_be_read_are_an_error_and_not_none(store: Path, hidden: str) -> None:
    (store / hidden).chmod(0)
    with pytest.raises(HeadroomError) as caught:
        _shown()
    assert "cannot be read" in caught.value.rule
    assert "Permission denied" in caught.value.rule


def test_folders_above_a_table_need_only_search_permission(store: Path) -> None:
    (store / "alerts").chmod(0o711)
    assert '"alert_id": "a"' in _shown("--format", "json")
    (store / "alerts").chmod(0o755)
    (store / "alerts" / "events").rename(store / "moved")
    (store / "alerts").chmod(0o711)
    assert "\nNo alert is known:" in _shown()


@pytest.mark.parametrize("path", ["foo://bucket/headroom", "http://localhost:1/headroom"])
def test_a_url_that_is_of_no_storage_is_an_error(store: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_STORE__PATH", path)
    with pytest.raises(HeadroomError, match="is of no storage that is known without Spark"):
        _shown()


def test_a_store_that_is_a_file_is_an_error(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = store / "file"
    file.write_text("x")
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(file))
    watch = partial(build_pipeline, load_clusters([]), "headroom watch")
    for run in (_shown, watch, lambda: CliRunner().invoke(maintain, [], catch_exceptions=False)):
        with pytest.raises(HeadroomError) as caught:
            run()
        assert (caught.value.subject, caught.value.rule) == (str(file), "is a file, and must be a folder")


def test_where_there_is_no_store_there_is_no_alert_yet(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(store / "none" / "yet"))
    assert "\nNo alert is known:" in _shown()


def test_suppressions_that_may_not_be_read_are_logged_as_not_in_force(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = store / "alerts" / "marks"
    table.chmod(0)
    taken: list[Suppressions] = []
    with without_root():
        SuppressionFollower(str(table), (), taken.append, lambda: 5).poll()
    assert [received.silences for received in taken] == [()]
    assert "silences and acknowledgements are not in force: " in caplog.text
    assert "Permission denied" in caplog.text


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda store: (store / "alerts" / "marks").chmod(0o555), "alerts/marks"),
        (lambda store: (store / "alerts" / "marks" / "_delta_log").chmod(0o555), "alerts/marks/_delta_log"),
    ],
)
def test_a_table_that_may_not_be_written_is_an_error_and_no_panic(
    store: Path, spoil: Callable[[Path], None], where: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in (store / "alerts").rglob("*"):
        path.chmod(0o777)
    spoil(store)
    with without_root(), pytest.raises(HeadroomError) as caught:
        append_record(str(store / "alerts" / "marks"), SILENCE)
    assert (caught.value.subject, caught.value.rule) == (str(store / where), "cannot be written")
    assert "panicked" not in capfd.readouterr().err


def test_a_table_that_is_to_be_made_needs_the_right_in_the_folder_above(store: Path) -> None:
    with without_root(), pytest.raises(HeadroomError) as caught:
        require_writable(str(store / "new" / "table"))
    assert (caught.value.subject, caught.value.rule) == (str(store), "cannot be written")
    store.chmod(0o777)
    with without_root():
        require_writable(str(store / "new" / "table"))
        require_writable(f"file://{store}/new/table")
    require_writable("s3a://bucket/table")


def test_the_check_names_a_store_that_may_not_be_written_or_looked_into(store: Path) -> None:
    with without_root():
        assert local_store(store / "new").answer is CheckStatus.FAILED
    store.chmod(0)
    with without_root():
        assert local_store(store / "alerts").answer is CheckStatus.FAILED


def test_a_relative_place_that_is_missing_is_named_as_a_whole(store: Path) -> None:
    with pytest.raises(HeadroomError) as raised:
        require_present("headroom-data")
    assert raised.value.subject == f"headroom-data (here {store.parent}/headroom-data)"


def test_a_place_that_may_not_be_searched_need_not_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_missing(str(tmp_path / "none"))
    assert not is_missing("s3a://bucket/none")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.lstat", refused)
    assert not is_missing(str(tmp_path / "none"))
