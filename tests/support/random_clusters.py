"""Random small clusters with throttles, shared by the unit and the Spark tests."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

BROKERS = (1, 2, 3, 4, 5)
RECORD_BYTES = 1000

# Few different rates, so that sums are exact and throttles often equal a threshold. One response of a megabyte per
# quota window brings 0.09 MB/s, which is sometimes sufficient and sometimes not.
_WRITE_RATES = tuple(times * 40_000.0 for times in range(6))
_THROTTLES = tuple(times * 40_000.0 for times in range(1, 12))
_remaining = st.integers(0, 5_000).map(lambda count: count * RECORD_BYTES)


@dataclass(frozen=True)
class Cluster:
    """Partitions and the rates in force; the rates of a broker missing from ``rates`` are unknown.

    Attributes:
        partitions: all partitions in a reassignment or in a throttled replica list.
        rates: leader and follower rate by broker, bytes per second; None for none.
    """

    partitions: tuple[PartitionTraffic, ...]
    rates: dict[int, tuple[float | None, float | None]]

    def throttles(self) -> dict[BrokerRole, float | None]:
        """Return the rates in force by broker and role, as input of ``planning``."""
        roles = (Role.LEADER, Role.FOLLOWER)
        return {(b, role): rate for b, both in self.rates.items() for role, rate in zip(roles, both, strict=True)}


def subsets(of: tuple[int, ...]) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.sampled_from(of)) if of else st.just(frozenset())


def _lists(usual: tuple[int, ...], among: tuple[int, ...]) -> st.SearchStrategy[frozenset[int] | None]:
    """Draw a list: mostly that of Kafka's own tool, sometimes other replicas, rarely unknown."""
    whole = st.just(frozenset(usual))
    return st.integers(0, 9).flatmap(lambda n: st.none() if n == 9 else subsets(among) if n > 5 else whole)


@st.composite
def partitions(draw: st.DrawFn, number: int) -> PartitionTraffic:
    """Draw a partition of ``t`` in a move or a list; without a leader it has no write rate and no copies."""
    replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True)))
    leader = draw(st.sampled_from((*replicas * 4, None)))
    followers = tuple(b for b in replicas if b != leader)
    in_sync = draw(subsets(followers)) | ({leader} if leader is not None else set())
    known = draw(subsets(followers)) | draw(subsets(followers)) if leader is not None else frozenset()
    adding = draw(subsets(followers))
    leader_listed, follower_listed = draw(_lists(replicas, replicas)), draw(_lists(followers, replicas))
    if not adding and leader_listed == follower_listed == frozenset():
        # The collector does not report partitions in neither a move nor a list, and Spark would ignore them.
        leader_listed = frozenset(replicas)
    return PartitionTraffic(
        name=TopicPartition("t", number),
        leader=leader,
        followers=followers,
        in_sync=frozenset(in_sync),
        adding=adding,
        leader_listed=leader_listed,
        follower_listed=follower_listed,
        write_bytes_per_s=draw(st.sampled_from((*_WRITE_RATES * 2, None))) if leader is not None else None,
        remaining_bytes={b: draw(_remaining) for b in sorted(known)},
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw one to four partitions on five brokers, whose rates are known or unknown."""
    count = draw(st.integers(1, 4))
    rate = st.sampled_from((*_THROTTLES, None))
    answers = {b: draw(st.tuples(rate, rate)) if draw(st.integers(0, 7)) else None for b in BROKERS}
    return Cluster(
        tuple(draw(partitions(number)) for number in range(count)),
        {b: both for b, both in answers.items() if both is not None},
    )
