"""The package contains all of Headroom that a driver needs, and nothing from the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import package
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLES = REPOSITORY / "docs" / "examples"
ROOMS = ("schemas", "planning", "cluster", "routing", "alerts", "streaming", "operations", "dashboard", "cli")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("package") / "submit"
    package.package(target)
    return target


def test_the_zip_contains_every_module_and_no_other(folder: Path) -> None:
    modules = {path.relative_to(REPOSITORY) for room in ROOMS for path in (REPOSITORY / room).rglob("*.py")}
    names = ZipFile(folder / "headroom.zip").namelist()
    assert {n for n in names if n.endswith(".py")} == {f"headroom/{module}" for module in (*modules, "__init__.py")}


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
    script = "import headroom.cli.main, headroom.streaming.pipeline; print(headroom.streaming.pipeline.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(folder / "headroom.zip")}
    calls = {
        "headroom.zip/headroom/streaming/pipeline.py": ["-c", script],
        "Run one or several Spark jobs": [f"{folder}/submit.py", "run", "--help"],
    }
    for printed, command in calls.items():
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert printed in done.stdout


# Packages on the index have the names of our layers.
OTHERS = ("cluster", "alerts", "schemas", "streaming", "planning")


def test_the_wheel_and_packages_named_like_its_layers_do_not_disturb_each_other(folder: Path, tmp_path: Path) -> None:
    python = environment_of(tmp_path / "venv")
    install(python, wheel_of(folder, tmp_path), *(other_wheel(name, tmp_path) for name in OTHERS))
    assert_it_plans(python, tmp_path)
    assert_others_are_there(python, tmp_path)
    pip(python, "uninstall", "--yes", *OTHERS)
    assert_it_plans(python, tmp_path)
    install(python, *(other_wheel(name, tmp_path) for name in OTHERS))
    pip(python, "uninstall", "--yes", "headroom")
    assert_others_are_there(python, tmp_path)


def environment_of(folder: Path) -> Path:
    """Return the interpreter of a new environment, which sees the dependencies of this one and not its Headroom."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    # Its own .pth files, one of which leads to the checkout, do not count there.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def wheel_of(folder: Path, to: Path) -> Path:
    wheel = to / "headroom-0.1.0-py3-none-any.whl"
    shutil.copy(folder / "headroom.zip", wheel)
    return wheel


def other_wheel(name: str, to: Path) -> Path:
    """Return the wheel of a package of somebody else."""
    wheel, info = to / f"{name}-9-py3-none-any.whl", f"{name}-9.dist-info"
    with ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "OTHER = True\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files = [f"{name}/__init__.py", *(f"{info}/{file}" for file in ("METADATA", "WHEEL", "RECORD"))]
        archive.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))
    return wheel


def install(python: Path, *wheels: Path) -> None:
    pip(python, "install", "--no-deps", "--no-index", *map(str, wheels))


def pip(python: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python), *words]
    subprocess.run(command, check=True, timeout=120)


def assert_it_plans(python: Path, folder: Path) -> None:
    words = ["plan", str(EXAMPLES / "plan_move.json"), "--state", str(EXAMPLES / "plan_state.json"), "--format", "json"]
    done = subprocess.run(
        [str(python), "-m", "headroom.cli.main", *words], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema_version"] == 1


def assert_others_are_there(python: Path, folder: Path) -> None:
    script = f"import {', '.join(OTHERS)}; assert all(m.OTHER for m in ({', '.join(OTHERS)}))"
    subprocess.run([str(python), "-c", script], cwd=folder, check=True, timeout=60)
