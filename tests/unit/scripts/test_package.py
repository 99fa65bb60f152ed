"""The package contains all of Headroom that a driver needs, and nothing from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import package
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
ROOMS = ("schemas", "planning", "cluster", "alerts", "streaming", "operations", "cli")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("package") / "submit"
    package.package(target)
    return target


def test_the_zip_contains_every_module_and_no_other(folder: Path) -> None:
    modules = {str(path.relative_to(REPOSITORY)) for room in ROOMS for path in (REPOSITORY / room).rglob("*.py")}
    names = ZipFile(folder / "headroom.zip").namelist()
    assert {name for name in names if name.endswith(".py")} == modules


def test_two_packages_can_be_built_at_the_same_time(tmp_path: Path) -> None:
    command = [sys.executable, package.__file__]
    builds = [subprocess.Popen([*command, str(tmp_path / name)], stdout=subprocess.DEVNULL) for name in ("a", "b")]
    assert [build.wait() for build in builds] == [0, 0]
    first, second = (ZipFile(tmp_path / name / "headroom.zip").namelist() for name in ("a", "b"))
    assert first == second


def test_the_jars_of_spark_are_beside_it(folder: Path) -> None:
    jars = {jar.name for jar in (REPOSITORY / ".jars" / "spark").glob("*.jar")}
    assert jars == {jar.name for jar in (folder / "jars").iterdir()}


def test_the_entry_runs_headroom_from_the_zip_alone(folder: Path, tmp_path: Path) -> None:
    script = "import cli.main, streaming.pipeline; print(streaming.pipeline.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(folder / "headroom.zip")}
    calls = {
        "headroom.zip/streaming/pipeline.py": ["-c", script],
        "Run one or several Spark jobs": [f"{folder}/submit.py", "run", "--help"],
    }
    for printed, command in calls.items():
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert printed in done.stdout
