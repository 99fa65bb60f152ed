"""Names of a mirror's topics."""

from __future__ import annotations

import pytest

from headroom.planning.migration.mirrors.names import sync_topic, sync_topics, target_topic


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"old.orders", "payments"}, "old.orders"),
        ({"orders"}, "orders"),
        # The target's own topic beside the mirror.
        ({"orders", "old.orders"}, "old.orders"),
        ({"other.orders"}, None),
        (set(), None),
    ],
)
def test_a_mirror_has_the_alias_of_the_origin_before_its_name_unless_it_keeps_it(
    there: set[str], expected: str | None
) -> None:
    assert target_topic("orders", True, "old", there) == expected


def test_any_other_topic_has_the_same_name_on_both_clusters() -> None:
    assert target_topic("orders", False, "old", {"orders", "old.orders"}) == "orders"
    assert target_topic("orders", False, "old", {"old.orders"}) is None


def test_the_topic_of_syncs_has_the_alias_of_the_other_cluster() -> None:
    """Source: Kafka 4.0, ``ReplicationPolicy.offsetSyncsTopic``."""
    assert sync_topic("new") == "mm2-offset-syncs.new.internal"
    topics = {"orders", sync_topic("new"), sync_topic("a"), "mm2-offset-syncs.x", "new.checkpoints.internal"}
    assert sync_topics(topics) == ["mm2-offset-syncs.a.internal", "mm2-offset-syncs.new.internal"]
