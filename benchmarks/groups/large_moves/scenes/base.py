"""Base class of scenes: partitions, rates and actions, with numbers from a fixed seed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.large_moves.scoring.claims import number_checks, throttle_claims
from benchmarks.groups.large_moves.scoring.truth import Cause, Check, all_of
from benchmarks.groups.large_moves.stage.groups import Group, Load, leader_load
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from headroom.schemas.keys import Role

S = TypeVar("S", bound="MoveScene")
BROKERS = 4
# Fixed, so that records of scenes from different runs count together.
_SEED = 41
MB = 1_000_000
# Partitions of one leader, and the bounds of their sizes in bytes. A size is larger than a fetch of 1 MiB per
# partition, so that the first burst completes no replica and changes no load.
COUNT, SIZES = 60, (1_600_000, 2_400_000)
ALERT_S = 30.0
# Time in which an alert of a cause that has ended would still come.
AFTER_S = 5.0


@dataclass(frozen=True)
class MoveScene(ABC):
    """One scene.

    Attributes:
        number: number of the scene in its class, from 0; it selects the variant.
        a: broker that leads at first.
        b: another broker with the data.
        c: third broker.
        d: fourth broker.
        extent: 0 to 1: position between the bounds of the number that decides the scene.
        load: 0 to 1: position between the bounds of the load.
    """

    # Name of the class in --scenes, its number of scenes, and a short description of the fault of each variant.
    key: ClassVar[str]
    count: ClassVar[int] = 4
    titles: ClassVar[Sequence[str]]

    number: int
    a: int
    b: int
    c: int
    d: int
    extent: float
    load: float

    @classmethod
    def drawn(cls: type[S], number: int) -> S:
        """Return a scene of this class by its number, the same in every run."""
        draw = random.Random(f"{_SEED} {cls.key} {number}")
        a, b, c, d = draw.sample(range(1, BROKERS + 1), BROKERS)
        return cls(number, a, b, c, d, draw.random(), draw.random())

    @property
    def name(self) -> str:
        """Return class and number in the notation of ``--scenes``."""
        return f"{self.key}:{self.number}"

    @property
    def title(self) -> str:
        """Return a short description of the fault."""
        return self.titles[self.number % len(self.titles)]

    @abstractmethod
    def groups(self) -> Sequence[Group]:
        """Return the partitions."""

    @abstractmethod
    def rates(self) -> Rates:
        """Return the rates at the beginning of the move by broker and role."""

    @abstractmethod
    def play(self, context: SceneContext) -> None:
        """Run the scene, and record its causes in the context.

        Raises:
            HeadroomError: the fault did not happen as planned.
        """

    def log_dirs(self, bench: BenchCluster) -> Mapping[tuple[int, int], Path]:
        """Return the log directories of replicas with a fixed one, by partition and broker."""
        return {}

    def sizes_draw(self) -> random.Random:
        """Return the random source of the partitions' sizes."""
        return random.Random(f"{_SEED} {self.name} sizes")

    def between(self, low: float, high: float) -> float:
        """Return the number at this scene's extent between two bounds."""
        return low + (high - low) * self.extent

    def loaded(self, low: float, high: float) -> float:
        """Return the number at this scene's load between two bounds."""
        return low + (high - low) * self.load


class OneLeaderScene(MoveScene):
    """A scene in which broker ``a`` leads the last group, and all brokers have the same rate in both roles."""

    def load_of_leader(self) -> Load:
        """Return the load of the leader when the move begins."""
        return leader_load(self.groups(), self.a)

    @abstractmethod
    def throttle_bytes_per_s(self) -> float:
        """Return the rate."""

    def rates(self) -> Rates:
        """Return the same rate for all brokers and roles."""
        return all_rates(self.throttle_bytes_per_s())

    def low_throttle_check(self, context: SceneContext) -> Check:
        """Return the check of the numbers of an alert about the throttle. The move must not have begun."""
        load, to_copy = self.load_of_leader(), context.topic.logs.to_copy_bytes(self.groups()[-1:])
        return all_of(*number_checks(self.throttle_bytes_per_s(), load, to_copy, load.required_bytes_per_s))

    def expect_low(self, context: SceneContext, check: Check) -> Cause:
        """Expect the alert that the throttle of the leader is too low."""
        claims = throttle_claims(Role.LEADER, [self.a], check)
        return context.expect(f"throttle of broker {self.a} too low", claims, ALERT_S)


def all_rates(leader_bytes_per_s: float, follower_bytes_per_s: float | None = None) -> dict[tuple[int, Role], float]:
    """Return one rate for every broker as leader, and one as destination; the same if that is None."""
    follower = leader_bytes_per_s if follower_bytes_per_s is None else follower_bytes_per_s
    rates = {(broker, Role.LEADER): leader_bytes_per_s for broker in range(1, BROKERS + 1)}
    return {**rates, **{(broker, Role.FOLLOWER): follower for broker, _ in rates}}
