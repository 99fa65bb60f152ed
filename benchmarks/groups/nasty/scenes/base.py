"""What every scene is: drawn once and for all, with groups of partitions, rates, and a story."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.nasty.stage.groups import Group
from benchmarks.groups.nasty.stage.stage import SceneContext
from benchmarks.groups.nasty.stage.topic import Rates

S = TypeVar("S", bound="NastyScene")
BROKERS = 4
_SEED = 41
MB = 1_000_000


@dataclass(frozen=True)
class NastyScene(ABC):
    """One scene.

    Attributes:
        number: of the scene in its class, from 0; it decides the variant.
        a: broker that leads at first.
        b: another one that holds the data.
        c: a third one.
        d: a fourth one.
        extent: 0 to 1: where between its bounds the number lies that decides the scene.
        load: 0 to 1: where between its bounds the load lies.
    """

    # Name of the class in BENCH_SCENES, and how many scenes of it there are.
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
        """Return class and number, as BENCH_SCENES takes them."""
        return f"{self.key}:{self.number}"

    @property
    @abstractmethod
    def title(self) -> str:
        """Return what happens, in short."""

    @abstractmethod
    def groups(self) -> Sequence[Group]:
        """Return the partitions."""

    @abstractmethod
    def rates(self) -> Rates:
        """Return the rates under which the move begins, by broker and role."""

    @abstractmethod
    def play(self, context: SceneContext) -> None:
        """Make it happen, and keep on the stage what is true.

        Raises:
            HeadroomError: what is to be true did not happen.
        """

    def log_dirs(self, bench: BenchCluster) -> Mapping[tuple[int, int], Path]:
        """Return the directory of replicas that are not to go where their broker chooses, by partition and broker."""
        return {}

    def sizes_draw(self) -> random.Random:
        """Return the source of the partitions' sizes."""
        return random.Random(f"{_SEED} {self.name} sizes")

    def between(self, low: float, high: float) -> float:
        """Return the number of this scene's extent between two bounds."""
        return low + (high - low) * self.extent

    def loaded(self, low: float, high: float) -> float:
        """Return the number of this scene's load between two bounds."""
        return low + (high - low) * self.load
