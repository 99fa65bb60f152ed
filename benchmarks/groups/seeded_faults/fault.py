"""A seeded fault: one defect that a developer could have made, as a replacement of text in one file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from benchmarks.fixtures.bench_cluster import failure


class Tier(str, Enum):
    """Tier of the tests: without a JVM, with Spark, with real brokers. Values are folders of ``tests``."""

    UNIT = "unit"
    SPARK = "spark"
    INTEGRATION = "integration"


@dataclass(frozen=True)
class SeededFault:
    """One defect, and the tests that are to catch it.

    Attributes:
        name: name in the record and in ``--faults``.
        layer: layer of the code that has the defect.
        what: the defect, in one sentence.
        path: file, relative to the checkout.
        old: text that occurs exactly once in the file.
        new: text in its place.
        tier: lowest tier that catches the defect.
        tests: pytest targets (files or node ids) of which at least one test has to fail.
        old_tests: targets for a commit whose tests have other names; the same as ``tests`` if empty.
    """

    name: str
    layer: str
    what: str
    path: str
    old: str
    new: str
    tier: Tier
    tests: tuple[str, ...]
    old_tests: tuple[str, ...] = ()

    def targets(self, of_commit: bool) -> tuple[str, ...]:
        """Return the pytest targets in the checkout, or in a commit with its older tests."""
        return self.old_tests if of_commit and self.old_tests else self.tests

    def seeded_in(self, text: str) -> str:
        """Return the text of the file with the defect.

        Raises:
            HeadroomError: the text to replace does not occur exactly once, or nothing would change.
        """
        count = text.count(self.old)
        if count != 1:
            raise failure(f"{self.name}: its text occurs {count} times in {self.path}, not once")
        if self.old == self.new:
            raise failure(f"{self.name}: its two texts are equal")
        return text.replace(self.old, self.new)

    def file(self, tree: Path) -> Path:
        """Return the file in a tree.

        Raises:
            HeadroomError: the tree has no such file.
        """
        path = tree / self.path
        if not path.is_file():
            raise failure(f"{self.name}: there is no file {self.path}")
        return path
