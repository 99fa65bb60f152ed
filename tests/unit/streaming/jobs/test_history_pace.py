"""Which messages wait for bronze, and for how long."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from schemas.config import KafkaSettings
from streaming.jobs import silver
from streaming.jobs.silver import HistoryJob, silver_trigger_s
from streaming.sources.kafka_options import kafka_options
from streaming.sources.ticks_topic import TicksTopic


def bronze_options(
    monkeypatch: pytest.MonkeyPatch, trigger_s: float, idle_s: float, *, expired: bool = False
) -> dict[str, object]:
    """The options of the topic's stream that the bronze query reads."""
    spark, reader = MagicMock(), MagicMock()
    spark.readStream.format.return_value.options.return_value = reader
    reader.option.return_value = reader
    monkeypatch.setattr(silver, "bronze", lambda records: MagicMock())
    monkeypatch.setattr(silver, "may_lose_records", lambda *_, **__: expired)
    topic = TicksTopic(spark, "ticks", kafka_options(KafkaSettings("b:1"), None))
    HistoryJob(MagicMock(), topic, MagicMock(), "checkpoints", trigger_s, idle_s=idle_s)._start_bronze()
    return dict(call.args for call in reader.option.call_args_list)


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


@pytest.mark.parametrize("expired", [False, True])
def test_lost_records_stop_bronze_unless_they_were_found_and_told_before(
    monkeypatch: pytest.MonkeyPatch, expired: bool
) -> None:
    assert bronze_options(monkeypatch, 1.0, 1.0, expired=expired)["failOnDataLoss"] == ("false" if expired else "true")


@pytest.mark.parametrize(("bronze_s", "silver_s"), [(0.2, 0.2), (1.0, 1.0), (10.0, 1.0), (30.0, 3.0), (300.0, 30.0)])
def test_silver_follows_bronze_within_a_tenth_of_its_interval(bronze_s: float, silver_s: float) -> None:
    assert silver_trigger_s(bronze_s) == pytest.approx(silver_s)
