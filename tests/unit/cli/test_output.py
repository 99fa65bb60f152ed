from __future__ import annotations

import pytest

from headroom.cli.common.output import print_table


def test_a_table_in_a_pipe_cuts_no_words_and_reads_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("what", "found"), [("a", "[bold] " + "word " * 100)])
    message = capsys.readouterr().out
    assert message.count("word") == 100
    assert "[bold]" in message
    assert "\x1b" not in message
