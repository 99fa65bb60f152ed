"""Throttles in force on a cluster, and their output as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from headroom.alerts.recommendations.commands import headroom_clear
from headroom.cluster.admin.config_keys import ALL_RATE_KEYS, LOG_DIRS_RATE
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.model import BrokerThrottles, Partition
from headroom.cluster.throttles.broker_rates import keys_from, rate_of
from headroom.schemas.text.amounts import UNKNOWN, rate_text


def throttle_text(rates: BrokerThrottles, role: str) -> str:
    """Return a broker's rate for ``leader``, ``follower`` or ``log_dirs`` as text, with its source."""
    if not rates.known:
        return UNKNOWN
    rate, source = rate_of(rates, role)
    if rate is None:
        return "none"
    return f"{rate_text(rate)} ({'cluster default' if source == 'default' else source})"


def view_header(view: ThrottleState) -> tuple[str, ...]:
    """Return the column headers; there is one for log directories only if such a rate is in force."""
    return ("what", "leader", "follower", *["log directories"] * _with_log_dirs(view), "part in moves")


def view_rows(view: ThrottleState) -> list[tuple[str, ...]]:
    """Return one row per broker, one for the cluster default if it is set, and one per topic with lists or moves."""
    moving = view.moving()
    roles = ("leader", "follower", *["log_dirs"] * _with_log_dirs(view))
    rows = [
        (f"broker {broker}", *(throttle_text(rates, role) for role in roles), _part(broker, moving))
        for broker, rates in sorted(view.rates.items())
    ]
    if keys_from(view.default, "default"):
        rows.append(("cluster default", *(throttle_text(view.default, role) for role in roles), ""))
    for topic in sorted({*view.listed_topics(), *(p.topic for p in moving)}):
        config = view.snapshot.topic_configs.get(topic)
        count = sum(p.topic == topic for p in moving)
        lists = (UNKNOWN, UNKNOWN) if config is None else (config.leader_list or "none", config.follower_list or "none")
        none = [""] * _with_log_dirs(view)
        rows.append((f"topic {topic}", *lists, *none, _partitions(count) if count else ""))
    return rows


def _with_log_dirs(view: ThrottleState) -> bool:
    return bool(view.log_dirs()) or view.default.log_dirs_bytes_per_s is not None


def view_json(view: ThrottleState) -> dict[str, Any]:
    """Return the view as a JSON object; a rate of null with known true means that none is set."""
    return {
        "brokers": [{"broker": broker, **vars(rates)} for broker, rates in sorted(view.rates.items())],
        "cluster_default": vars(view.default),
        "topics": [
            {"topic": topic, "leader_list": config.leader_list, "follower_list": config.follower_list}
            for topic, config in view.listed_topics().items()
        ],
        "unread_topics": view.unread_topics(),
        "moving": [
            {"topic": p.topic, "partition": p.partition, "adding": list(p.adding), "removing": list(p.removing)}
            for p in view.moving()
        ],
    }


def notes(view: ThrottleState, config: str | None = None) -> list[str]:
    """Return notes about the view that its rows do not show.

    Args:
        view: throttles and moves.
        config: settings file that recommended commands name; the default one if None.
    """
    rates = view.rates.values()
    limited = any(r.leader_bytes_per_s is not None or r.follower_bytes_per_s is not None for r in rates)
    listed = view.listed_topics()
    lines = [f"{_partitions(len(view.moving()))} moving." if view.moving() else "Nothing is moving."]
    if (limited or listed) and not view.moving():
        lines.append(f"Throttles left behind can slow ordinary replication; clear them: {headroom_clear(config)}")
    if limited and not listed and not view.unread_topics():
        lines.append("No throttled replica list is set: a rate without a list limits nothing.")
    # A broker that did not report its rates may have one.
    if listed and not limited and all(r.known for r in rates):
        lines.append("No rate is set: a list without a rate limits nothing.")
    if view.log_dirs():
        lines.append(_log_dirs_note(view.log_dirs(), config))
    lines.extend(_in_file_notes(view))
    if view.unread_topics():
        lines.append(f"Unknown, because they could not be read: the lists of {', '.join(view.unread_topics()[:5])}.")
    return lines


def _log_dirs_note(brokers: Collection[int], config: str | None) -> str:
    return (
        f"On broker(s) {', '.join(map(str, brokers))} a rate limits moves between the log directories of the broker "
        f"({LOG_DIRS_RATE}), and nothing else; once these are done, clear it: {headroom_clear(config)}"
    )


def _in_file_notes(view: ThrottleState) -> Iterator[str]:
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
