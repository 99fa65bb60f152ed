"""Rules of the settings that several layers share."""

from __future__ import annotations

import pytest

from schemas.config import ClusterSettings, CollectSettings, Settings, Source, TicksSettings


@pytest.mark.parametrize(("own", "has_ticks"), [("", "watched:1"), ("  ", "watched:1"), ("own:1", "own:1")])
def test_the_ticks_are_in_the_watched_cluster_unless_another_one_is_set(own: str, has_ticks: str) -> None:
    settings = Settings(ClusterSettings("watched:1"), TicksSettings(own))
    assert settings.ticks_cluster().bootstrap_servers == has_ticks


def test_metrics_are_at_the_brokers_entry_or_its_own_host() -> None:
    collect = CollectSettings(source=Source.PROMETHEUS, endpoints={"1": "agent:7071"})
    assert collect.endpoint(1, "broker1") == collect.endpoint(1, None) == "agent:7071"
    assert (collect.endpoint(2, "broker2"), collect.endpoint(2, None)) == ("broker2:9404", None)
