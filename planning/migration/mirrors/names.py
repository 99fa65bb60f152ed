"""Names of a mirror: its topic on the target, and the topic of MirrorMaker's offset syncs."""

from __future__ import annotations

from collections.abc import Collection

_BEFORE, _AFTER = "mm2-offset-syncs.", ".internal"


def target_topic(topic: str, is_mirror: bool, origin: str, target_topics: Collection[str]) -> str | None:
    """Return the name that a topic of the origin has on the target; None if it is not there.

    MirrorMaker puts the origin's alias before the name (``DefaultReplicationPolicy``), unless it is set up to keep the
    name (``IdentityReplicationPolicy``), as cluster links do. If both are there, the plain one is the target's own.

    Args:
        topic: name on the origin.
        is_mirror: whether MirrorMaker may have made it; otherwise it has the same name.
        origin: name of the origin, which is its alias.
        target_topics: topics of the target.
    """
    names = (f"{origin}.{topic}", topic) if is_mirror else (topic,)
    return next((name for name in names if name in target_topics), None)


def other_mirrors(topic: str, mirror: str, target_topics: Collection[str]) -> list[str]:
    """Return the other topics of the target that may be the mirror of a topic, under another alias, sorted.

    Args:
        topic: name on the origin.
        mirror: topic that counts as its mirror.
        target_topics: topics of the target.
    """
    return sorted(name for name in target_topics if name.endswith(f".{topic}") and name != mirror)


def sync_topic(alias: str) -> str:
    """Return the topic of the offset syncs of a mirror; ``alias`` is that of the other cluster in MirrorMaker."""
    return f"{_BEFORE}{alias}{_AFTER}"


def sync_topics(topics: Collection[str]) -> list[str]:
    """Return the topics of a cluster that have the offset syncs of a mirror, of whichever clusters, sorted."""
    return sorted(topic for topic in topics if topic.startswith(_BEFORE) and topic.endswith(_AFTER))
