"""The last line of ``headroom throttle show``: the predicted finish, from the newest tick in the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import QueryBuilder, write_deltalake

from headroom.cli.throttle.command import finish_json
from headroom.operations.throttles.expected_finish import expected_finish, finish_note
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings

NOW_MS = 1_800_000_000_000
COLUMNS = 'tick_ms, "cluster", state, eta_low_s, eta_s, eta_high_s'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cluster=ClusterSettings(name="orders"), store=StoreSettings(path=str(tmp_path / "store")))


def write(settings: Settings, *rows: tuple[int, str, str, float | None, float | None, float | None]) -> None:
    """Rows of tick, cluster, state, earliest, expected and latest."""
    values = ", ".join(
        f"({tick_ms}, '{cluster}', '{state}', {', '.join('NULL' if eta is None else str(eta) for eta in etas)})"
        for tick_ms, cluster, state, *etas in rows
    )
    casts = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in COLUMNS.split(", ")[3:])
    days = "CAST(to_timestamp_millis(tick_ms) AS DATE) AS date"
    keys = "'t' AS topic, CAST(0 AS INT) AS \"partition\", CAST(1 AS INT) AS adding_replica"
    sql = f'SELECT tick_ms, "cluster", state, {keys}, {casts}, {days} FROM (VALUES {values}) AS t({COLUMNS})'
    made = QueryBuilder().execute(sql).read_all()
    write_deltalake(f"{settings.store.path}/gold/reassignment_progress", made, mode="append")


def test_it_is_the_last_replica_of_the_newest_tick(settings: Settings) -> None:
    write(
        settings,
        (NOW_MS - 6_000, "orders", "catching_up", 80.0, 90.0, 100.0),
        (NOW_MS - 5_000, "orders", "in_sync", 0.0, 0.0, 0.0),
        (NOW_MS - 5_000, "orders", "catching_up", 50.0, 55.0, 60.0),
        (NOW_MS - 5_000, "orders", "catching_up", 20.0, 30.0, 40.0),
        (NOW_MS - 1_000, "payments", "catching_up", 500.0, 550.0, 600.0),
    )
    found = expected_finish(settings, NOW_MS)
    assert found is not None
    assert (found.replicas, found.in_sync, found.eta_low_s, found.eta_s, found.eta_high_s) == (3, 1, 50, 55, 60)
    # Five of the seconds have passed.
    text = "At the throttles in force the moves are done in 45 to 55 s, by the tick of 5 s ago."
    assert found.text(NOW_MS) == text


def test_the_expected_finish_states_replicas_that_never_finish_or_are_unknown(settings: Settings) -> None:
    write(
        settings,
        (NOW_MS - 2_000, "orders", "never", None, None, None),
        (NOW_MS - 2_000, "orders", "no_data", None, None, None),
        (NOW_MS - 2_000, "orders", "catching_up", 50.0, 55.0, None),
    )
    found = expected_finish(settings, NOW_MS)
    assert found is not None
    assert "1 of 3 new replicas never get in sync" in found.text(NOW_MS)
    assert "unknown for 1 of 3" in replace(found, never=0).text(NOW_MS)
    assert "done in 48 s or more" in replace(found, never=0, unknown=0).text(NOW_MS)


def test_an_old_tick_is_not_used(settings: Settings) -> None:
    assert expected_finish(settings, NOW_MS) is None
    write(settings, (NOW_MS - 61_000, "orders", "catching_up", 50.0, 55.0, 60.0))
    assert expected_finish(settings, NOW_MS) is None
    assert "start headroom watch" in finish_note(settings)


def test_a_table_that_cannot_be_read_is_no_reason_to_show_nothing(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Path(settings.store.path) / "gold" / "reassignment_progress" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{", encoding="utf-8")
    assert finish_json(settings) is None
    assert "expected_finish is null" in (printed := capsys.readouterr().err)
    assert "is damaged" in printed
    assert "is damaged" in finish_note(settings)
