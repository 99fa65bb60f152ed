"""External text: no printed or logged character controls a terminal or starts a new line."""

from __future__ import annotations

import ast
import io
import json
import logging
import subprocess
from pathlib import Path

import pytest

from headroom.cli.common import output
from headroom.cli.common.logs import LineFormatter, is_not_py4j
from headroom.cli.common.progress import ProgressView
from headroom.schemas.text import one_line, printable, printable_json, shell_quoted
from tests.unit.fakes.hostile import ACTING, SHELL_NAMES, acts

REPOSITORY = Path(__file__).resolve().parents[3]


def test_characters_that_a_terminal_acts_on_are_escapes() -> None:
    assert printable("a\x1b[2J\nb\x9b\u202e\u2028\ud800\x7f") == r"a\x1b[2J\nb\x9b\u202e\u2028\ud800\x7f"


@pytest.mark.parametrize("text", ["", "orders-0", "größer × 2, 消費", "🙂", "a b…"])
def test_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_a_line_is_one_line_of_bounded_length() -> None:
    assert one_line(" a\n\tb  c\x1b ") == r"a b c\x1b"
    # Four characters and the ellipsis.
    assert one_line("abcdefgh", 5) == "abcd…"
    assert one_line("abcde", 5) == "abcde"


def test_json_keeps_its_value_and_has_nothing_that_acts() -> None:
    value = {"name": f"{ACTING}\ud800", "list": [1, None, "é"]}
    for text in (json.dumps(value, ensure_ascii=False, indent=2), json.dumps(value)):
        shown = printable_json(text)
        assert acts(shown) == []
        assert json.loads(shown) == value


@pytest.mark.parametrize("name", SHELL_NAMES)
def test_a_quoted_name_is_one_word_in_one_line(name: str, tmp_path: Path) -> None:
    quoted = shell_quoted(name)
    assert quoted.isprintable()
    command = f"printf '%s' {quoted} > word"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "word").read_bytes() == name.encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["word"]


def test_a_plain_name_is_quoted_as_ever() -> None:
    assert [shell_quoted(name) for name in ("orders", "a b", "größer", "")] == ["orders", "'a b'", "'größer'", "''"]


def test_printed_text_has_only_the_intended_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.echo(f"cluster {ACTING}")
    output.echo_lines(f"one\ntwo {printable(ACTING)}", colour="red")
    output.print_table("", ("name", "value"), [("a", ACTING)])
    output.print_json({"name": ACTING})
    output.print_json_line({"name": ACTING})
    printed = capsys.readouterr().out
    assert acts(printed) == []
    # One line, two lines, a table with its header, an object in four lines, and one in a single line. The table's cell
    # fits into its 160 columns.
    assert len(printed.splitlines()) == 1 + 2 + 2 + 4 + 1
    assert "[RESOLVED] all is well" not in [line.strip() for line in printed.splitlines()]


def test_a_step_of_a_long_command_is_printable() -> None:
    shown = io.StringIO()
    ProgressView(output.console(shown)).print_line(ACTING)
    assert acts(shown.getvalue()) == []
    assert shown.getvalue().count("\n") == 1


@pytest.mark.parametrize("package", ["site-packages", "py4j-0.10.9.9-src.zip"])
def test_records_of_py4j_are_not_shown_whatever_logger_they_use(package: str) -> None:
    """It logs a traceback on the root logger for each call that ends with the gateway."""
    for name in ("root", "py4j.java_gateway"):
        record = logging.LogRecord(name, logging.INFO, f"/lib/{package}/py4j/java_gateway.py", 1, "m", None, None)
        assert not is_not_py4j(record)
    assert is_not_py4j(logging.LogRecord("root", logging.INFO, "/headroom/cli/watch/collect.py", 1, "m", None, None))


def test_a_record_is_one_line_and_a_traceback_is_indented() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    logger.warning("of %s", ACTING)
    try:
        raise ValueError(ACTING)
    except ValueError:
        logger.exception("failed")
    first, second, *trace = stream.getvalue().splitlines()
    assert first.startswith("WARNING of orders")
    assert second == "ERROR failed"
    assert trace
    assert all(line.startswith("  ") for line in trace)
    assert acts(stream.getvalue()) == []


CLI = REPOSITORY / "cli"
# What makes text printable, and what prints a page of documentation to a file.
PRINTERS = {CLI / "common" / "output.py", CLI / "config" / "template.py"}


def test_there_are_commands_to_look_at() -> None:
    assert {path for path in PRINTERS if not path.is_file()} == set()
    assert len(list(CLI.rglob("*.py"))) > 50


@pytest.mark.parametrize("path", sorted(set(CLI.rglob("*.py")) - PRINTERS), ids=lambda p: str(p.relative_to(CLI)))
def test_commands_print_by_what_makes_it_printable(path: Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = {ast.unparse(called) for called in calls}
    # main.py makes errors printable itself, so that --help does not import the library for tables.
    allowed = {"click.echo"} if path.name == "main.py" else set()
    assert names & {"click.echo", "click.secho", "print", "sys.stdout.write"} <= allowed
