"""Which messages wait for bronze, and for how long."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from headroom.schemas.config import KafkaSettings
from headroom.streaming.jobs.silver import silver_trigger_s
from headroom.streaming.queries import bronze_query
from headroom.streaming.queries.bronze_query import BronzeQuery
from headroom.streaming.queries.resume import Start
from headroom.streaming.sources.kafka_options import kafka_options
from headroom.streaming.sources.ticks_topic import TicksTopic


def readers(
    monkeypatch: pytest.MonkeyPatch, trigger_s: float, idle_s: float, *starts: Start
) -> list[dict[str, object]]:
    """The options of the topic's stream of each query that a start of bronze runs, if its start is as given."""
    spark, reader, given, options = MagicMock(), MagicMock(), list(starts), list[dict[str, object]]()
    spark.readStream.format.return_value.options.return_value = reader

    def option(name: str, value: object) -> MagicMock:
        if name == "subscribe":
            options.append({})
        options[-1][name] = value
        return reader

    reader.option = option
    monkeypatch.setattr(bronze_query, "bronze", lambda records: MagicMock())
    monkeypatch.setattr(bronze_query, "prepare_start", lambda *_, **__: given.pop(0))
    topic = TicksTopic(spark, "ticks", kafka_options(KafkaSettings("b:1"), None))
    store = MagicMock()
    store.location = lambda table: f"nowhere/{table.path}"
    BronzeQuery(MagicMock(), topic, store, "nowhere/checkpoints/bronze", trigger_s, idle_s).start()
    assert not given
    return options


def bronze_options(monkeypatch: pytest.MonkeyPatch, trigger_s: float, idle_s: float) -> dict[str, object]:
    (options,) = readers(monkeypatch, trigger_s, idle_s, Start())
    return options


@pytest.mark.parametrize(
    ("trigger_s", "idle_s", "oldest"),
    # Triggers come after 30 and 60 s. By 45 s the one after 60 s counts, also if it comes a little early.
    [(30.0, 60.0, "45000ms"), (1.0, 2.0, "1500ms"), (30.0, 10.0, "0ms"), (30.0, 0.0, "0ms")],
)
def test_few_messages_wait_for_the_last_trigger_within_the_idle_time(
    monkeypatch: pytest.MonkeyPatch, trigger_s: float, idle_s: float, oldest: str
) -> None:
    options = bronze_options(monkeypatch, trigger_s, idle_s)
    assert options["maxTriggerDelay"] == oldest
    fewest, most = options["minOffsetsPerTrigger"], options["maxOffsetsPerTrigger"]
    assert isinstance(fewest, int)
    assert isinstance(most, int)
    # A backlog is read in whole batches: what is left at its end is what may wait.
    assert 0 < fewest < most


def test_lost_records_stop_bronze_and_a_new_checkpoint_begins_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    (options,) = readers(monkeypatch, 1.0, 1.0, Start({0: 5, 1: 7}))
    assert (options["failOnDataLoss"], options["startingOffsets"]) == ("true", '{"ticks": {"0": 5, "1": 7}}')
    assert bronze_options(monkeypatch, 1.0, 1.0)["startingOffsets"] == "earliest"


def test_an_unfinished_batch_is_finished_first_without_what_it_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    first, then = readers(monkeypatch, 1.0, 1.0, Start(has_gap=True), Start({0: 9}))
    assert (first["failOnDataLoss"], then["failOnDataLoss"]) == ("false", "true")
    assert then["startingOffsets"] == '{"ticks": {"0": 9}}'


@pytest.mark.parametrize(("bronze_s", "silver_s"), [(0.2, 0.2), (1.0, 1.0), (10.0, 1.0), (30.0, 3.0), (300.0, 30.0)])
def test_silver_follows_bronze_within_a_tenth_of_its_interval(bronze_s: float, silver_s: float) -> None:
    assert silver_trigger_s(bronze_s) == pytest.approx(silver_s)
