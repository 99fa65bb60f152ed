"""Throttles in force on a cluster, and their output as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from cluster.admin.config_keys import ALL_RATE_KEYS, LOG_DIRS_RATE
from cluster.model import BrokerThrottles, Partition, Snapshot, TopicConfig
from cluster.throttles.broker_rates import keys_from, rate_of
from cluster.throttles.rates import read_throttles
from schemas.config import Settings
from schemas.text.amounts import UNKNOWN, rate_text

_UNKNOWN = BrokerThrottles(known=False)


@dataclass(frozen=True)
class ThrottleView:
    """Throttles and moves of a cluster at one time.

    Attributes:
        snapshot: partitions, reassignments and lists; topics without a configuration in it could not be read.
        rates: rates in force, by broker that is registered or has a replica; ``known`` is false if it did not report
            them.
        default: cluster-wide default rates, in force on brokers without their own.
    """

    snapshot: Snapshot
    rates: dict[int, BrokerThrottles]
    default: BrokerThrottles = _UNKNOWN

    def moving(self) -> list[Partition]:
        """Return the partitions that are being reassigned."""
        return [p for p in self.snapshot.partitions.values() if p.moving]

    def participants(self) -> list[int]:
        """Return the brokers that take part in running moves: leaders, replicas and destinations."""
        brokers = (broker for p in self.moving() for broker in (*p.replicas, *p.adding, p.leader))
        return sorted({broker for broker in brokers if broker is not None})

    def alive(self, broker: int) -> bool:
        """Return whether a broker is registered now."""
        found = self.snapshot.brokers.get(broker)
        return found is not None and found.alive

    def known(self) -> set[int]:
        """Return the brokers that are registered, or named by a partition."""
        named = (p.replicas + p.adding + p.removing + p.isr + p.offline for p in self.snapshot.partitions.values())
        return {*self.rates, *(broker for brokers in named for broker in brokers)}

    def down(self) -> list[int]:
        """Return the brokers that are known, but not registered now."""
        return [broker for broker in sorted(self.known()) if not self.alive(broker)]

    def silent(self) -> list[int]:
        """Return the brokers that are registered, but did not report their rates."""
        return [broker for broker, rates in sorted(self.rates.items()) if self.alive(broker) and not rates.known]

    def of(self, broker: int) -> BrokerThrottles:
        """Return the rates in force on a broker; ``known`` is false if it did not report them."""
        return self.rates.get(broker, _UNKNOWN)

    def log_dirs(self) -> list[int]:
        """Return the brokers on which a rate for moves between log directories is in force."""
        return [broker for broker, rates in sorted(self.rates.items()) if rates.log_dirs_bytes_per_s is not None]

    def listed(self) -> dict[str, TopicConfig]:
        """Return the topics that have a throttled replica list."""
        return {topic: config for topic, config in sorted(self.snapshot.topic_configs.items()) if config.listed}

    def unread_topics(self) -> list[str]:
        """Return the topics whose lists could not be read."""
        topics = {name.topic for name in self.snapshot.partitions}
        return sorted(topics - set(self.snapshot.topic_configs))


def read_view(settings: Settings) -> ThrottleView:
    """Read the throttles in force now; every broker reports its own rates.

    Raises:
        HeadroomError: the cluster could not be reached, or did not return its partitions.
    """
    state = read_throttles(settings)
    rates = {broker: state.rates.get(broker, _UNKNOWN) for broker in sorted(state.snapshot.brokers)}
    return ThrottleView(state.snapshot, rates, state.default)


def throttle_text(rates: BrokerThrottles, role: str) -> str:
    """Return a broker's rate for ``leader``, ``follower`` or ``log_dirs`` as text, with its source."""
    if not rates.known:
        return UNKNOWN
    rate, source = rate_of(rates, role)
    if rate is None:
        return "none"
    return f"{rate_text(rate)} ({'cluster default' if source == 'default' else source})"


def view_header(view: ThrottleView) -> tuple[str, ...]:
    """Return the column headers; there is one for log directories only if such a rate is in force."""
    return ("what", "leader", "follower", *["log directories"] * _with_log_dirs(view), "part in moves")


def view_rows(view: ThrottleView) -> list[tuple[str, ...]]:
    """Return one row per broker, one for the cluster default if it is set, and one per topic with lists or moves."""
    moving = view.moving()
    roles = ("leader", "follower", *["log_dirs"] * _with_log_dirs(view))
    rows = [
        (f"broker {broker}", *(throttle_text(rates, role) for role in roles), _part(broker, moving))
        for broker, rates in sorted(view.rates.items())
    ]
    if keys_from(view.default, "default"):
        rows.append(("cluster default", *(throttle_text(view.default, role) for role in roles), ""))
    for topic in sorted({*view.listed(), *(p.topic for p in moving)}):
        config = view.snapshot.topic_configs.get(topic)
        count = sum(p.topic == topic for p in moving)
        lists = (UNKNOWN, UNKNOWN) if config is None else (config.leader_list or "none", config.follower_list or "none")
        none = [""] * _with_log_dirs(view)
        rows.append((f"topic {topic}", *lists, *none, _partitions(count) if count else ""))
    return rows


def _with_log_dirs(view: ThrottleView) -> bool:
    return bool(view.log_dirs()) or view.default.log_dirs_bytes_per_s is not None


def view_json(view: ThrottleView) -> dict[str, Any]:
    """Return the view as a JSON object; a rate of null with known true means that none is set."""
    return {
        "brokers": [{"broker": broker, **vars(rates)} for broker, rates in sorted(view.rates.items())],
        "cluster_default": vars(view.default),
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


def notes(view: ThrottleView) -> list[str]:
    """Return notes about the view that its rows do not show."""
    rates = view.rates.values()
    limited = any(r.leader_bytes_per_s is not None or r.follower_bytes_per_s is not None for r in rates)
    listed = view.listed()
    lines = [f"{_partitions(len(view.moving()))} moving." if view.moving() else "Nothing is moving."]
    if (limited or listed) and not view.moving():
        lines.append(
            "Throttles left behind can slow ordinary replication; clear them: headroom throttle clear --execute"
        )
    if limited and not listed and not view.unread_topics():
        lines.append("No throttled replica list is set: a rate without a list limits nothing.")
    # A broker that did not report its rates may have one.
    if listed and not limited and all(r.known for r in rates):
        lines.append("No rate is set: a list without a rate limits nothing.")
    if view.log_dirs():
        lines.append(_log_dirs_note(view.log_dirs()))
    lines.extend(_in_file_notes(view))
    if view.unread_topics():
        lines.append(f"Unknown, because they could not be read: the lists of {', '.join(view.unread_topics()[:5])}.")
    return lines


def _log_dirs_note(brokers: Collection[int]) -> str:
    return (
        f"On broker(s) {', '.join(map(str, brokers))} a rate limits moves between the log directories of the broker "
        f"({LOG_DIRS_RATE}), and nothing else; once these are done, clear it: headroom throttle clear --execute"
    )


def _in_file_notes(view: ThrottleView) -> Iterator[str]:
    for key in ALL_RATE_KEYS:
        brokers = [str(broker) for broker, rates in sorted(view.rates.items()) if key in rates.in_file]
        if brokers:
            yield (
                f"The properties file of broker(s) {', '.join(brokers)} sets {key}, which is not in force: Kafka takes "
                "it from the dynamic configuration alone."
            )


def _part(broker: int, moving: list[Partition]) -> str:
    sends = sum(p.leader == broker for p in moving)
    receives = sum(broker in p.adding for p in moving)
    lines = [f"leads {sends}"] * bool(sends) + [f"receives {receives}"] * bool(receives)
    return ", ".join(lines)


def _partitions(count: int) -> str:
    return f"{count} partition" if count == 1 else f"{count} partitions"
