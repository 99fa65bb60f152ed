"""Names of a mirror: its topic on the target, and the topic of MirrorMaker's offset syncs."""

from __future__ import annotations

from collections.abc import Collection

_SYNCS = "mm2-offset-syncs.{}.internal"
_BEFORE, _AFTER = _SYNCS.split("{}")


def mirror_topic(topic: str, origin: str, target_topics: Collection[str]) -> str | None:
    """Return the name that a topic of the origin has on the target; None if it is not there.

    MirrorMaker puts the origin's alias before the name (``DefaultReplicationPolicy``), unless it is set up to keep the
    name (``IdentityReplicationPolicy``), as cluster links do. If both are there, the plain one is the target's own.

    Args:
        topic: name on the origin.
        origin: name of the origin, which is its alias.
        target_topics: topics of the target.
    """
    return next((name for name in (f"{origin}.{topic}", topic) if name in target_topics), None)


def sync_topics(alias: str, topics: Collection[str]) -> list[str]:
    """Return the topics of a cluster that may have the offset syncs of its mirror at another one.

    Args:
        alias: alias of the other cluster in MirrorMaker.
        topics: topics of the cluster.

    Returns:
        The topic of that alias alone, if it is there; otherwise all topics of syncs, sorted.
    """
    own = _SYNCS.format(alias)
    if own in topics:
        return [own]
    return sorted(topic for topic in topics if topic.startswith(_BEFORE) and topic.endswith(_AFTER))
