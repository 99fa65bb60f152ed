"""Choice of the preferred leaders, where the present ones need not stay."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping

from headroom.planning.reassignments.generation.broker_loads import BrokerLoads
from headroom.planning.reassignments.generation.draft import Draft

# Drafts that a broker is the first replica of and another broker could be, by both brokers.
_Passable = dict[int, dict[int, list[Draft]]]


def spread_leads(drafts: Collection[Draft], loads: BrokerLoads, in_each_topic: bool) -> None:
    """Choose the first replica of drafts with ``lead_options``, so that preferred leads are even.

    A chain of changes is found wherever there is one, so the largest number of leads is as small as possible.

    Args:
        drafts: partitions that have options; changed.
        loads: preferred leads of all partitions in question, those of the drafts included; changed.
        in_each_topic: whether leads are made even in each topic before they are in total, because a topic's partitions
            usually carry similar traffic. That takes partitions enough to even out the total afterwards.
    """
    free = [draft for draft in drafts if draft.lead_options]
    for draft in free:
        if draft.replicas[0] not in draft.lead_options:
            _pass_lead(draft, min(draft.lead_options, key=lambda b: (loads.leads[b], b)), loads)
    if not in_each_topic:
        _even_out(free, loads.leads, loads, lambda draft, old, to: True)
        return
    by_topic: dict[str, list[Draft]] = defaultdict(list)
    for draft in free:
        by_topic[draft.present.topic].append(draft)
    for topic, own in by_topic.items():
        if len(own) > 1:
            _even_out(own, loads.topic_leads[topic], loads, lambda draft, old, to: True)

    def keeps_topic_even(draft: Draft, old: int, to: int) -> bool:
        leads = loads.topic_leads[draft.present.topic]
        return leads[old] > leads[to]

    while _even_out(free, loads.leads, loads, keeps_topic_even):
        pass


def _pass_lead(draft: Draft, to: int, loads: BrokerLoads) -> None:
    loads.move_lead(draft.present.topic, draft.replicas[0], to)
    draft.put_first(to)


def _even_out(
    drafts: Collection[Draft], leads: Counter[int], loads: BrokerLoads, allowed: Callable[[Draft, int, int], bool]
) -> int:
    """Pass leads on, along chains of brokers, from those with most leads; return the number of changes.

    Args:
        drafts: partitions whose first replica may change.
        leads: the numbers to make even; ``loads`` changes them.
        loads: all numbers.
        allowed: whether the lead of a draft may pass from one broker to another now.
    """
    passable: _Passable = defaultdict(lambda: defaultdict(list))
    for draft in drafts:
        _offer(draft, passable)
    brokers = sorted({broker for draft in drafts for broker in draft.lead_options} | passable.keys())
    changes = 0
    stuck: set[int] = set()
    while True:
        start = max((b for b in brokers if b not in stuck), key=lambda b: (leads[b], -b), default=None)
        if start is None or leads[start] <= min(leads[b] for b in brokers) + 1:
            return changes
        way = _chain(start, leads, passable, allowed)
        if not way:
            stuck.add(start)
        for old, to in reversed(way):
            draft = passable[old][to].pop()
            _pass_lead(draft, to, loads)
            _offer(draft, passable)
            changes += 1


def _offer(draft: Draft, passable: _Passable) -> None:
    first = draft.replicas[0]
    for broker in draft.lead_options:
        if broker != first:
            passable[first][broker].append(draft)


def _chain(
    start: int, leads: Mapping[int, int], passable: _Passable, allowed: Callable[[Draft, int, int], bool]
) -> list[tuple[int, int]]:
    """Return the shortest chain of brokers from one to another with at least two leads less; empty if there is none."""
    came: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        broker = waiting.popleft()
        ways = passable.get(broker, {})
        for to in sorted(ways, key=lambda b: (leads[b], b)):
            if to == start or to in came or not _has_passable(ways[to], broker, to, allowed):
                continue
            came[to] = broker
            if leads[to] <= leads[start] - 2:
                return _steps(came, start, to)
            waiting.append(to)
    return []


def _has_passable(drafts: list[Draft], old: int, to: int, allowed: Callable[[Draft, int, int], bool]) -> bool:
    """Return whether the last draft in a list can pass its lead; drafts that cannot are removed before."""
    while drafts and not (drafts[-1].replicas[0] == old and allowed(drafts[-1], old, to)):
        drafts.pop()
    return bool(drafts)


def _steps(came: Mapping[int, int], start: int, end: int) -> list[tuple[int, int]]:
    steps = []
    while end != start:
        steps.append((came[end], end))
        end = came[end]
    return steps[::-1]
