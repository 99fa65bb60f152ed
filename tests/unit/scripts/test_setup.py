"""Set-up reports a missing requirement in one line, and never counts an incomplete step as done."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from http.client import IncompleteRead
from pathlib import Path
from zipfile import ZipFile

import jars
import preflight
import pytest
import setup
import side_by_side
from preflight import SetupError
from side_by_side import Step, run_all

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[3]
SETUP = ROOT / "scripts" / "setup.py"


def java_that(folder: Path, does: str) -> dict[str, str]:
    """Return an environment whose JAVA_HOME has a java that is this shell script."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{does}\n")
    java.chmod(0o755)
    return {**os.environ, "JAVA_HOME": str(folder)}


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_java_version_is_read_from_its_output(output: str, version: int | None) -> None:
    assert preflight.java_version(output) == version


@pytest.mark.parametrize(
    ("does", "shown"),
    [("""echo 'openjdk version "11.0.2"' >&2""", "is Java 11, and 17 or newer is needed"), ("exit 1", "its version")],
)
def test_an_unsupported_java_is_a_one_line_error(does: str, shown: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(SETUP), "jars"], env=java_that(tmp_path, does), capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert shown in result.stderr


def test_a_java_that_is_no_program_is_a_one_line_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", java_that(tmp_path, "")["JAVA_HOME"])
    (tmp_path / "bin" / "java").write_bytes(b"\0\0\0\0")
    with pytest.raises(SetupError, match=r"java: .*bin/java cannot be run \(Exec format error\)"):
        preflight.check_java()


def test_what_java_prints_about_its_options_is_not_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    does = """echo "Picked up JAVA_TOOL_OPTIONS: $JAVA_TOOL_OPTIONS"; echo 'openjdk version "17.0.15"'"""
    monkeypatch.setenv("JAVA_HOME", java_that(tmp_path, does)["JAVA_HOME"])
    assert preflight.check_java() == 'openjdk version "17.0.15"\n'


def test_a_missing_java_is_an_error_that_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"java: not found in JAVA_HOME.*apt install openjdk-17"):
        preflight.check_java()


@pytest.mark.parametrize(("given", "used"), [("C", "C.UTF-8"), ("POSIX", "C.UTF-8"), ("de_DE.UTF-8", "de_DE.UTF-8")])
def test_java_can_read_paths_with_any_letters(given: str, used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", given)
    preflight.use_utf8()
    assert os.environ["LC_ALL"] == used


@pytest.mark.parametrize(("used", "said"), [("3.10.2", "has Python 3.10.2, and this is 3.13."), ("3.13.1", None)])
def test_a_python_other_than_that_of_the_environment_is_reported(
    used: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {used}\n")
    monkeypatch.setattr(setup, "VENV", tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    setup._tell_another_python()
    printed = capsys.readouterr().out
    assert said in printed if said else printed == ""


def test_an_old_python_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    with pytest.raises(SetupError, match=r"this is Python 3\.9, and 3\.10 or newer is needed"):
        preflight.check_python()


def test_a_missing_venv_module_is_an_error_that_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"apt install python3\.\d+-venv"):
        preflight.check_venv_module()


def test_a_containers_limit_counts_less_the_memory_of_its_processes(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    (tmp_path / "memory.max").write_text("4000000000\n")
    (tmp_path / "memory.stat").write_text("anon 1500000000\nfile 900000000\n")
    # 4.0 GB - 1.5 GB is less than the 8.192 GB of the machine.
    assert preflight.available_memory_bytes(tmp_path / "meminfo", tmp_path) == 2_500_000_000


def test_without_a_limit_the_machines_memory_counts(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 8000000 kB\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert preflight.available_memory_bytes(tmp_path / "meminfo", tmp_path) == 8_192_000_000


def test_unknown_memory_is_not_an_error(tmp_path: Path) -> None:
    assert preflight.available_memory_bytes(tmp_path / "none", tmp_path) is None


def test_too_little_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "available_memory_bytes", lambda *_: 2_900_000_000)
    with pytest.raises(SetupError, match=r"2\.9 GB available, and 3 GB are needed"):
        preflight.check_memory()


def test_too_little_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1_900_000_000}))
    with pytest.raises(SetupError, match=r"1\.9 GB free in /x, and 2 GB are needed"):
        preflight.check_disk(Path("/x"))


@pytest.mark.parametrize("given", ["http://proxy.example:3128", "proxy.example:3128"])
def test_java_gets_the_proxies_of_the_environment(given: str) -> None:
    options = jars.proxy_options({"HTTPS_PROXY": given})
    assert options == ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without jars, whose Ivy does not come from Maven Central."""
    (tmp_path / "home").mkdir()
    (tmp_path / "ivy.xml").write_text("<ivy-module/>")
    monkeypatch.setenv(jars.SETTINGS_VARIABLE, "mirror.xml")
    monkeypatch.setattr(jars, "PAUSE_S", 0)
    return tmp_path


def fetched(checkout: Path, configuration: str) -> Path:
    """Let a configuration be fetched, and return its last jar."""
    folder = checkout / ".jars" / configuration
    folder.mkdir(parents=True)
    for name in jars.REQUIRED[configuration]:
        ZipFile(folder / f"{name}1.jar", "w").close()
    jars._stamp(checkout, configuration).write_text(jars._ivy_hash(checkout))
    return folder / f"{name}1.jar"


@pytest.mark.parametrize("does", ["exit 1", "exit 0", "mkdir -p .jars/.arriving/spark; exit 0"])
def test_a_fetch_that_brought_not_all_jars_does_not_count(
    does: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_that(checkout / "home", does)["JAVA_HOME"])
    with pytest.raises(SetupError, match="jars: cannot be fetched"):
        jars.fetch(checkout, ["spark", "kafka"], checkout)
    assert jars.missing(checkout, ("spark", "kafka")) == ["spark", "kafka"]


def test_only_the_configurations_that_are_missing_are_fetched(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The arguments of Ivy show in the folders that it makes.
    folders = "while [ $1 != -confs ]; do shift; done; shift; while [ $1 != -retrieve ]; do set -- $@; f=$1; shift; "
    does = folders + 'mkdir -p .jars/.arriving/$f; cp "$EMPTY_ZIP" .jars/.arriving/$f/jolokia-agent-jvm-2.jar; '
    does += 'cp "$EMPTY_ZIP" .jars/.arriving/$f/jmx_prometheus_javaagent-1.jar; done'
    ZipFile(checkout / "empty.zip", "w").close()
    monkeypatch.setenv("EMPTY_ZIP", str(checkout / "empty.zip"))
    monkeypatch.setenv("JAVA_HOME", java_that(checkout / "home", does)["JAVA_HOME"])
    jars.fetch(checkout, ["agents"], checkout)
    assert [folder.name for folder in (checkout / ".jars").iterdir() if folder.is_dir()] == ["agents"]
    assert jars.missing(checkout, ("kafka", "agents")) == ["kafka"]


def test_the_first_line_about_the_connection_is_the_reason(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    does = "echo 'io.delta#delta-spark;4.4.0: not found'; echo 'Connection refused: repository'; exit 1"
    monkeypatch.setenv("JAVA_HOME", java_that(checkout / "home", does)["JAVA_HOME"])
    with pytest.raises(SetupError, match="cannot be fetched: Connection refused: repository"):
        jars.fetch(checkout, ["spark"], checkout)


def test_another_ivy_file_means_another_fetch(checkout: Path) -> None:
    fetched(checkout, "spark")
    assert jars.missing(checkout, ("spark", "kafka")) == ["kafka"]
    (checkout / "ivy.xml").write_text("<ivy-module version='2.0'/>")
    assert jars.missing(checkout, ("spark", "kafka")) == ["spark", "kafka"]


@pytest.mark.parametrize("damage", ["cut off", "removed"])
def test_jars_that_were_damaged_later_are_fetched_again(damage: str, checkout: Path) -> None:
    jar = fetched(checkout, "kafka")
    if damage == "removed":
        jar.unlink()
    else:
        jar.write_bytes(jar.read_bytes()[:-10])
    assert jars.missing(checkout, ("kafka",)) == ["kafka"]


def test_a_jar_with_another_content_than_expected_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "ivy.jar").write_bytes(b"something else")
    monkeypatch.setattr(jars, "_CENTRAL", tmp_path.as_uri() + "/")
    with pytest.raises(ValueError, match=r"org/ivy\.jar"):
        jars._download(tmp_path / "to", "org/ivy.jar", "0" * 64)
    assert list((tmp_path / "to").iterdir()) == []


def cut_off(*_: object, **__: object) -> None:
    raise IncompleteRead(b"PK", 1_000_000)


@pytest.mark.parametrize("answer", [None, cut_off])
def test_ivy_is_that_of_pyspark_where_maven_central_does_not_answer_in_whole(
    answer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(jars.SETTINGS_VARIABLE, raising=False)
    monkeypatch.setattr(jars, "_CENTRAL", (tmp_path / "nowhere").as_uri() + "/")
    if answer is not None:
        monkeypatch.setattr("urllib.request.urlopen", answer)
    (tmp_path / "ivy-2.5.3.jar").touch()
    (tmp_path / "commons-cli-1.11.0.jar").touch()
    step = jars.JarsStep(tmp_path, ["spark"], lambda: tmp_path)
    (tmp_path / ".jars").mkdir()
    assert [jar.name for jar in step._ivy_jars()] == ["ivy-2.5.3.jar", "commons-cli-1.11.0.jar"]


def test_the_pinned_ivy_is_the_one_that_pyspark_ships() -> None:
    shipped = Path(importlib.util.find_spec("pyspark").origin).parent / "jars"  # type: ignore[union-attr,arg-type]
    for path, digest in jars._IVY.items():
        assert hashlib.sha256((shipped / path.rsplit("/", 1)[1]).read_bytes()).hexdigest() == digest


class Counting(Step):
    """A step that ends after so many seconds, with an error if one is given."""

    def __init__(self, seconds: float, failure: BaseException | None = None) -> None:
        super().__init__("counting")
        self._seconds, self._failure = seconds, failure

    def work(self) -> None:
        assert self.command(["sleep", str(self._seconds)], ROOT, Path(os.devnull)) == (-1 if self.is_stopped else 0)
        if self._failure is not None:
            raise self._failure

    def progress(self) -> str:
        return "3 of 7"


def test_the_first_step_that_fails_ends_the_others_and_is_the_error() -> None:
    failing, long = Counting(0.1, SetupError("jars", "are gone", "Look")), Counting(60)
    with pytest.raises(SetupError, match="jars: are gone"):
        run_all([long, failing])
    assert not long.is_alive()
    assert long.is_stopped


def test_a_second_set_up_of_a_checkout_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "LOCK", tmp_path / ".jars" / ".lock")
    order: list[str] = []

    def second() -> None:
        with setup._alone():
            order.append("second")

    # Not capsys: it loses what the other thread prints while it is read.
    with redirect_stdout(io.StringIO()) as printed:
        with setup._alone():
            thread = threading.Thread(target=second)
            thread.start()
            until(lambda: "waiting" in printed.getvalue())
            order.append("first")
        thread.join(60)
    assert order == ["first", "second"]
    assert printed.getvalue() == "set-up: waiting for another set-up of this checkout\n"


def test_a_disk_that_cannot_be_written_is_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device", "/x/.jars")

    monkeypatch.setattr(setup, "_fetch", full)
    monkeypatch.setattr(sys, "argv", ["setup.py", "packages"])
    assert setup.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("set-up: [Errno 28] No space left on device: '/x/.jars'. Make room")


def test_long_steps_show_how_far_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(side_by_side, "_LOG_EVERY_S", 0.2)
    run_all([Counting(0.6), Counting(0.1)])
    lines = capsys.readouterr().out.splitlines()
    assert lines
    # On a busy machine the short one runs a little longer.
    assert all(re.fullmatch(r"set-up: 0:0\d  counting: 3 of 7(; counting: 3 of 7)?", line) for line in lines)


def test_what_pip_has_downloaded_is_read_from_its_output() -> None:
    output = (
        "Collecting x\n  Downloading x-1-py3-none-any.whl (250 kB)\n  Downloading pyspark-4.2.0.tar.gz (450.1 MB)\n"
    )
    assert setup.downloaded_bytes(output) == pytest.approx(450.35e6)


def test_an_unreachable_registry_is_not_reported_as_a_missing_package() -> None:
    output = (
        "WARNING: Retrying after connection broken by 'ProxyError'\nERROR: No matching distribution found for click"
    )
    assert setup._failure_reason(output) == "the package registry is out of reach"


def test_a_full_disk_is_not_reported_as_one_of_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "WARNING: Retrying after connection broken by 'ReadTimeoutError'\n"
    says += "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    step = setup.PackagesStep()
    (tmp_path / "pip.log").write_text(says)
    monkeypatch.setattr(step, "command", lambda *_: 1)
    with pytest.raises(SetupError, match=r"there is no space left\. Make room in .* or set TMPDIR"):
        step._pip(tmp_path / "pip.log")


def test_a_refused_package_is_reported_with_pips_message() -> None:
    assert setup._failure_reason("ERROR: No matching distribution found for click") == (
        "ERROR: No matching distribution found for click"
    )


def test_a_failed_class_archive_is_reported_once_and_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "VENV_PYTHON", "false")
    monkeypatch.setattr(setup, "ARCHIVE_STAMP", tmp_path / ".archived")
    monkeypatch.setattr(setup, "ARCHIVE_LOG", tmp_path / "archive.log")
    monkeypatch.setattr(setup, "LOCK", tmp_path / ".lock")
    setup._archive_classes("java 17")
    assert "Spark and brokers start some seconds more slowly" in capsys.readouterr().out
    setup._archive_classes("java 17")
    assert capsys.readouterr().out == ""
    setup._archive_classes("java 21")
    assert "archiving classes" in capsys.readouterr().out
