"""Memory and cores of a machine, and of a container with less, by the files of its cgroup."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from headroom.cluster.machine import available_bytes, cores
from headroom.schemas.quantities import QuantityError, parse_heap_bytes


def _cgroup(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    return folder


def test_a_container_with_a_limit_has_what_is_left_of_it(tmp_path: Path) -> None:
    # 6 GB less 5,999,000,000 bytes: less than any machine that runs the tests has free.
    assert available_bytes(_cgroup(tmp_path, memory_max="6000000000\n", memory_current="5999000000\n")) == 1_000_000
    assert available_bytes(_cgroup(tmp_path, memory_max="5000\n", memory_current="6000\n")) == 0


@pytest.mark.parametrize("files", [{}, {"memory_max": "max\n", "memory_current": "1000\n"}, {"memory_max": "\n"}])
def test_without_a_limit_it_is_what_the_machine_has(files: dict[str, str], tmp_path: Path) -> None:
    free = psutil.virtual_memory().available
    assert available_bytes(_cgroup(tmp_path, **files)) == pytest.approx(free, rel=0.2)


@pytest.mark.parametrize(
    ("cpu_max", "count"),
    # Half a core: 50 ms of work in every 100 ms.
    [("50000 100000\n", 0.5), ("max 100000\n", None), ("", None), ("900000000 100000\n", None)],
)
def test_cores_are_those_of_the_process_or_less_in_a_container(
    cpu_max: str, count: float | None, tmp_path: Path
) -> None:
    mine = float(len(os.sched_getaffinity(0)))
    assert cores(_cgroup(tmp_path, cpu_max=cpu_max)) == (mine if count is None else count)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1g", 2**30),
        ("512m", 2**29),
        ("1024k", 2**20),
        ("1t", 2**40),
        ("2G", 2**31),
    ],
)
def test_a_heap_is_read_as_the_jvm_reads_it(text: str, size_bytes: int) -> None:
    assert parse_heap_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "g", "much", "nan", "infg", "1x", "256", "1gb", "1.5g", "1_0g", "１g", " 1g"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="size of a heap"):
        parse_heap_bytes(text)
