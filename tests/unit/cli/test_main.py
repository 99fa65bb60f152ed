from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headroom.cli import main
from headroom.cli.common.options import format_option
from headroom.cli.common.output import print_json
from headroom.cli.common.parameters import Rate
from headroom.schemas.errors import HeadroomError

REPOSITORY = Path(__file__).resolve().parents[3]


def _raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


def _install(monkeypatch: pytest.MonkeyPatch, command: click.Command) -> None:
    monkeypatch.setitem(sys.modules, "headroom.cli.sample", type(sys)("headroom.cli.sample"))
    monkeypatch.setattr(sys.modules["headroom.cli.sample"], "sample", command, raising=False)
    monkeypatch.setitem(main.COMMANDS, "sample", ("cli.sample:sample", "A sample."))


def test_help_names_every_command_and_imports_none() -> None:
    code = "import sys; from headroom.cli import main; main.run(['--help']); "
    code += "print(sorted(m for m in sys.modules if '.' in m))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    text, _, modules = output.stdout.rpartition("\n[")
    assert all(name in text for name in main.COMMANDS)
    for heavy in ("pyspark", "kafka", "pydantic", "rich", "deltalake"):
        assert f"'{heavy}." not in modules


def test_a_users_mistake_is_one_line_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _install(monkeypatch, _raising(HeadroomError("broker 3", "is down\nfor long", "Start it.")))
    assert main.run(["sample"]) == 1
    assert capsys.readouterr().err == "headroom: broker 3: is down for long. Start it.\n"


@pytest.mark.parametrize("has_result", [True, False])
def test_a_failure_is_json_where_that_is_asked_for_and_no_result_tells_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_result: bool
) -> None:
    @click.command()
    @format_option
    def command(output_format: str) -> None:
        if has_result and output_format == "json":
            print_json({"brokers": []})
        raise HeadroomError("broker 3", "is down\x1b[2J", "Start it.")

    _install(monkeypatch, command)
    assert main.run(["sample"]) == 1
    assert capsys.readouterr().out == ""
    assert main.run(["sample", "--format", "json"]) == 1
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out
    error = {"type": "error", "subject": "broker 3", "rule": "is down\x1b[2J", "remedy": "Start it."}
    assert json.loads(printed.out) == {"schema_version": 1} | ({"brokers": []} if has_result else error)
    assert printed.err.startswith("headroom: broker 3: is down")


@pytest.mark.parametrize("arguments", [["nosuch"], ["--nosuch"], ["sample", "--nosuch"], ["sample", "extra"]])
def test_wrong_use_is_exit_2(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, _raising(AssertionError("must not be called")))
    assert main.run(arguments) == 2


@pytest.mark.parametrize(
    ("arguments", "command", "rule"),
    [
        (["sample", "--format", "json", "--nosuch"], "headroom sample", "No such option '--nosuch'"),
        (["sample", "--rate", "12,5MB", "--format", "json"], "headroom sample", "'12,5MB' is not a rate"),
        (["sample", "extra", "--format=json"], "headroom sample", "unexpected extra argument"),
        (["nosuch", "--format", "json"], "headroom", "No such command 'nosuch'"),
    ],
)
def test_wrong_use_is_json_where_that_is_asked_for(
    arguments: list[str],
    command: str,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    @format_option
    @click.option("--rate", type=Rate())
    def sample(output_format: str, rate: int | None) -> None:
        raise AssertionError("must not be called")

    _install(monkeypatch, sample)
    assert main.run(arguments) == 2
    error = json.loads(capsys.readouterr().out)
    assert (error["type"], error["subject"]) == ("error", command)
    assert rule in error["rule"]
    assert error["remedy"] == f"See: {command} --help"
    assert main.run([word for word in arguments if "json" not in word and word != "--format"]) == 2
    assert capsys.readouterr().out == ""


def test_ctrl_c_is_quiet_and_exit_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _install(monkeypatch, _raising(KeyboardInterrupt()))
    assert main.run(["sample"]) == 130
    assert capsys.readouterr().err.strip() == ""


def test_a_command_may_choose_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, _raising(click.exceptions.Exit(1)))
    assert main.run(["sample"]) == 1


def test_an_unknown_command_is_an_error_that_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["nosuch"]) == 2
    assert "there are demo, init, check" in capsys.readouterr().err
