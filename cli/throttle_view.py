"""What throttles are in force on a cluster, read from it, and as rows for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cli.output import UNKNOWN, mb_per_s
from cluster.model import BrokerThrottles, Partition, Snapshot, TopicConfig
from cluster.throttles import read_throttles
from schemas.config import Settings


@dataclass(frozen=True)
class ThrottleView:
    """Throttles and moves of a cluster at one time.

    Attributes:
        snapshot: partitions, reassignments and lists; a topic without a configuration there could not be read.
        rates: rates in force per broker that is registered or holds a replica; ``known`` false: it did not tell.
    """

    snapshot: Snapshot
    rates: dict[int, BrokerThrottles]

    def moving(self) -> list[Partition]:
        """Return the partitions that a reassignment moves now."""
        return [p for p in self.snapshot.partitions.values() if p.moving]

    def participants(self) -> list[int]:
        """Return the brokers that take part in running moves: leaders, replicas and destinations."""
        return sorted({broker for p in self.moving() for broker in (*p.replicas, *p.adding, *_some(p.leader))})

    def alive(self, broker: int) -> bool:
        """Return whether a broker is registered now."""
        seen = self.snapshot.brokers.get(broker)
        return seen is not None and seen.alive

    def listed(self) -> dict[str, TopicConfig]:
        """Return the topics that have a throttled replica list."""
        return {topic: config for topic, config in sorted(self.snapshot.topic_configs.items()) if config.listed}

    def unread_topics(self) -> list[str]:
        """Return the topics whose lists could not be read."""
        topics = {name.topic for name in self.snapshot.partitions}
        return sorted(topics - set(self.snapshot.topic_configs))


def read_view(settings: Settings) -> ThrottleView:
    """Return what is in force now; every broker tells its own rates.

    Raises:
        HeadroomError: the cluster could not be reached, or did not tell its partitions.
    """
    state = read_throttles(settings)
    silent = BrokerThrottles(known=False)
    return ThrottleView(state.snapshot, {b: state.rates.get(b, silent) for b in sorted(state.snapshot.brokers)})


def rate_text(rates: BrokerThrottles, role: str) -> str:
    """Return a broker's rate of a role, ``leader`` or ``follower``, with where it is set."""
    if not rates.known:
        return UNKNOWN
    rate, source = (
        (rates.leader_bytes_per_s, rates.leader_source)
        if role == "leader"
        else (rates.follower_bytes_per_s, rates.follower_source)
    )
    if rate is None:
        return "none"
    return f"{mb_per_s(rate)} ({'cluster default' if source == 'default' else source})"


def view_rows(view: ThrottleView) -> list[tuple[str, str, str, str]]:
    """Return one row per broker and per topic that is listed or moves: what, leader side, follower side, moving."""
    moving = view.moving()
    rows = [
        (f"broker {broker}", rate_text(rates, "leader"), rate_text(rates, "follower"), _part(broker, moving))
        for broker, rates in sorted(view.rates.items())
    ]
    for topic in sorted({*view.listed(), *(p.topic for p in moving)}):
        config = view.snapshot.topic_configs.get(topic)
        count = sum(p.topic == topic for p in moving)
        lists = (UNKNOWN, UNKNOWN) if config is None else (config.leader_list or "none", config.follower_list or "none")
        rows.append((f"topic {topic}", *lists, _partitions(count) if count else ""))
    return rows


def view_json(view: ThrottleView) -> dict[str, Any]:
    """Return the view ready for JSON; a rate of null with known true says that none is set."""
    return {
        "brokers": [{"broker": broker, **vars(rates)} for broker, rates in sorted(view.rates.items())],
        "topics": [
            {"topic": topic, "leader_list": config.leader_list, "follower_list": config.follower_list}
            for topic, config in view.listed().items()
        ],
        "unread_topics": view.unread_topics(),
        "moving": [
            {"topic": p.topic, "partition": p.partition, "adding": list(p.adding), "removing": list(p.removing)}
            for p in view.moving()
        ],
    }


def remarks(view: ThrottleView) -> list[str]:
    """Return what a person should know about the view beyond its rows."""
    limited = [broker for broker, rates in view.rates.items() if _any_rate(rates)]
    listed = view.listed()
    said = [f"{_partitions(len(view.moving()))} moving." if view.moving() else "Nothing is moving."]
    if (limited or listed) and not view.moving():
        said.append(
            "Throttles left behind can slow ordinary replication; clear them: headroom throttle clear --execute"
        )
    if limited and not listed and not view.unread_topics():
        said.append("No throttled replica list is set: a rate without a list limits nothing.")
    if listed and not limited and all(rates.known for rates in view.rates.values()):
        said.append("No rate is set: a list without a rate limits nothing.")
    if view.unread_topics():
        said.append(f"Unknown, for they could not be read: the lists of {', '.join(view.unread_topics()[:5])}.")
    return said


def _any_rate(rates: BrokerThrottles) -> bool:
    return rates.leader_bytes_per_s is not None or rates.follower_bytes_per_s is not None


def _part(broker: int, moving: list[Partition]) -> str:
    sends = sum(p.leader == broker for p in moving)
    receives = sum(broker in p.adding for p in moving)
    said = [f"leads {sends}"] * bool(sends) + [f"receives {receives}"] * bool(receives)
    return ", ".join(said)


def _partitions(count: int) -> str:
    return f"{count} partition" if count == 1 else f"{count} partitions"


def _some(leader: int | None) -> tuple[int, ...]:
    return () if leader is None else (leader,)
