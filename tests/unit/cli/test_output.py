from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headroom.cli.common.output import print_table


def test_a_table_in_a_pipe_cuts_no_words_and_reads_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("what", "found"), [("a", "[bold] " + "word " * 100)])
    message = capsys.readouterr().out
    assert message.count("word") == 100
    assert "[bold]" in message
    assert "\x1b" not in message


def _python(code: str, *, encoding: str = "utf-8", **options: Any) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-c", f"from headroom.cli.common.streams import prepare_streams, lasting_output\n{code}"]
    return subprocess.run(command, env=environment, timeout=60, check=False, **options)


_CHANGE = """
import sys, click
from headroom.cli import main
from headroom.cli.common.changing import execute_option, print_step
from headroom.cli.common.output import echo, print_json

@click.command()
@execute_option
def change(execute):
    for number in range(3):
        echo(f"plan {number}")
        print_step(f"step {number}")
    open(sys.argv[1], "w").close()
    print_json({"done": True})

sys.modules["headroom.cli.sample"] = type(sys)("headroom.cli.sample")
sys.modules["headroom.cli.sample"].change = change
main.COMMANDS["change"] = ("cli.sample:change", "A change.")
sys.exit(main.run(["change", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("reader", ["ended", "full disk"])
def test_a_change_is_made_to_its_end_though_nobody_reads_its_output(tmp_path: Path, reader: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = writing if reader == "ended" else os.open("/dev/full", os.O_WRONLY)
    errors = tmp_path / "errors"
    try:
        for options, is_made in (["--execute"], True), ([], False):
            done = tmp_path / f"done{len(options)}"
            with errors.open("w") as stderr:
                command = [sys.executable, "-c", _CHANGE, str(done), *options]
                assert subprocess.run(command, stdout=output, stderr=stderr, timeout=60, check=False).returncode == 1
            assert done.exists() is is_made
            reported = "the output: could not be written" in errors.read_text()
            assert reported is is_made
    finally:
        os.close(writing)


def test_a_change_is_made_to_its_end_though_nobody_reads_its_steps(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", _CHANGE, str(tmp_path / "done"), "--execute"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=writing, timeout=60, check=False)
    os.close(writing)
    # The result itself was read.
    assert ran.returncode == 0
    assert ran.stdout.endswith(b'"done": true\n}\n')
    assert (tmp_path / "done").exists()


def test_a_character_that_the_locale_does_not_have_is_escaped() -> None:
    code = "prepare_streams()\nfrom headroom.cli.common.output import *\necho('ö \u2713 \U0001f600')"
    assert _python(code, encoding="latin-1", stdout=subprocess.PIPE).stdout == b"\xf6 \\u2713 \\U0001f600\n"


def test_json_is_the_same_in_every_locale() -> None:
    code = "prepare_streams()\nfrom headroom.cli.common.output import *\nprint_json({'name': 'ö \u2713 \U0001f600'})"
    printed = _python(code, encoding="latin-1", stdout=subprocess.PIPE).stdout
    assert json.loads(printed.decode("ascii"))["name"] == "ö \u2713 \U0001f600"


def test_a_closed_standard_stream_is_opened_before_anything_else_gets_its_number() -> None:
    code = "import sys\nprepare_streams()\nprint('lost')\nprint(open('/dev/zero').fileno(), file=sys.stderr)"
    ran = _python(code, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert ran.returncode == 0
    assert int(ran.stderr) > 2
