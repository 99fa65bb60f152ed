"""Rules of the settings that several layers share."""

from __future__ import annotations

import pytest

from headroom.schemas.config import ClusterSettings, CollectSettings, Settings, Source, StoreSettings, TicksSettings
from headroom.schemas.tables import MIGRATION_OFFSETS, MIGRATION_SYNCS, PARTITION_LOAD, PARTITION_WRITE_RATE


@pytest.mark.parametrize(("own", "has_ticks"), [("", "watched:1"), ("  ", "watched:1"), ("own:1", "own:1")])
def test_the_ticks_are_in_the_watched_cluster_unless_another_one_is_set(own: str, has_ticks: str) -> None:
    settings = Settings(ClusterSettings("watched:1"), TicksSettings(own))
    assert settings.ticks_cluster().bootstrap_servers == has_ticks


def test_metrics_are_at_the_brokers_entry_or_its_own_host() -> None:
    collect = CollectSettings(source=Source.PROMETHEUS, endpoints={"1": "agent:7071"})
    assert collect.endpoint(1, "broker1") == collect.endpoint(1, None) == "agent:7071"
    assert (collect.endpoint(2, "broker2"), collect.endpoint(2, None)) == ("broker2:9404", None)


def test_the_load_by_hour_has_a_retention_of_its_own() -> None:
    store = StoreSettings(gold_keep_days=7, partition_load_keep_days=60)
    assert store.keep_days(PARTITION_LOAD.path) == 60
    assert store.keep_days(PARTITION_WRITE_RATE.path) == 7


def test_kept_offset_syncs_outlast_the_rest_of_silver() -> None:
    store = StoreSettings(silver_keep_days=7, migration_syncs_keep_days=400)
    assert store.keep_days(MIGRATION_SYNCS.path) == 400
    assert store.keep_days(MIGRATION_OFFSETS.path) == 7


@pytest.mark.parametrize(
    ("host", "endpoint"), [("b", "b:9404"), ("10.0.0.1", "10.0.0.1:9404"), ("::1", "[::1]:9404"), (None, None)]
)
def test_an_ipv6_host_is_in_brackets_before_its_port(host: str | None, endpoint: str | None) -> None:
    assert CollectSettings(port=9404).endpoint(1, host) == endpoint
