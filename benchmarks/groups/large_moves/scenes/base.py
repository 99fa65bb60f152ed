"""Base class of scenes: partitions, rates and actions, with numbers from a fixed seed."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates

S = TypeVar("S", bound="MoveScene")
BROKERS = 4
# Fixed, so that records of scenes from different runs count together.
_SEED = 41
MB = 1_000_000


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

    # Name of the class in BENCH_SCENES, and its number of scenes.
    key: ClassVar[str]
    count: ClassVar[int] = 4

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
        """Return class and number in the notation of BENCH_SCENES."""
        return f"{self.key}:{self.number}"

    @property
    @abstractmethod
    def title(self) -> str:
        """Return a short description of the fault."""

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
