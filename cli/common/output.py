"""Output of results: tables, JSON and charts.

All text is made printable first, because names come from clusters, tables and files that others write. A control
character in a name must not reach the terminal.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headroom.cli.common.options import OUTPUT_FORMAT
from headroom.operations.files import write_own
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text import printable, printable_json

# Of the JSON that commands print. A key that is added leaves it; one that goes or means something else raises it.
SCHEMA_VERSION = 1
# Key of whether a command has printed JSON, in the values that click's contexts share.
_PRINTED = "headroom.printed_json"
# Bytes of a chart in which its element <svg> begins.
_BEGINNING = 1000


def echo(text: str = "", *, err: bool = False) -> None:
    """Print one line; line breaks and other unprintable characters are escaped.

    Args:
        text: the line.
        err: print to standard error.
    """
    click.echo(printable(text), err=err)


def echo_lines(text: str, *, colour: str | None = None, in_colour: bool | None = None) -> None:
    """Print text of several lines, each as ``echo`` does; the caller guarantees that its line breaks are its own.

    Args:
        text: the lines.
        colour: colour on a terminal; the terminal's default if None.
        in_colour: whether the colour is used; None: if standard output is a terminal.
    """
    click.secho("\n".join(map(printable, text.split("\n"))), fg=colour, color=in_colour)


def partition_json(name: TopicPartition) -> dict[str, Any]:
    """Return the name of a partition as a JSON object."""
    return {"topic": name.topic, "partition": name.partition}


def with_schema_version(value: Any) -> Any:
    """Return the JSON value of a result with the version of its keys; in an array each object has it."""
    if isinstance(value, list):
        return [with_schema_version(one) for one in value]
    return {"schema_version": SCHEMA_VERSION, **value}


def print_json(value: Any) -> None:
    """Print an object, or an array of objects, as indented JSON on standard output, with the version of its keys.

    It is in ASCII, so that it is the same JSON whatever the encoding of standard output.
    """
    _note_printed()
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """Return an object, or an array of objects, as indented JSON, with the version of its keys."""
    return printable_json(json.dumps(with_schema_version(value), indent=2))


def print_json_line(value: Any) -> None:
    """Print the same in one line."""
    _note_printed()
    click.echo(printable_json(json.dumps(with_schema_version(value))))


def print_json_error(error: HeadroomError, arguments: Sequence[str], meta: Mapping[str, Any]) -> None:
    """Print what failed as JSON, if that is the format and no result was printed, which would tell of the failure.

    Args:
        error: what failed.
        arguments: arguments of the command line, which may be wrong.
        meta: values that click's contexts of the command line share.
    """
    # Of wrong arguments click may not have read the option.
    words = " ".join(arguments).replace("--format=", "--format ")
    is_json = meta.get(OUTPUT_FORMAT, "json" if "--format json" in words else "text") == "json"
    if is_json and not meta.get(_PRINTED):
        print_json_line({"type": "error", "subject": error.subject, "rule": error.rule, "remedy": error.remedy})


def _note_printed() -> None:
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_PRINTED] = True


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str | Text]], *, err: bool = False) -> None:
    """Print rows under a title. Cells wrap and are never truncated; in a pipe the text is the same, without colours.

    Args:
        title: the title.
        header: names of the columns.
        rows: the rows.
        err: print to standard error.
    """
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, overflow="fold", header_style="bold")
    for row in rows:
        table.add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in row))
    target = console(sys.stderr if err else None)
    with target.capture() as capture:
        target.print(table)
    # rich pads every line with spaces to the full width.
    click.echo("\n".join(line.rstrip() for line in capture.get().rstrip().splitlines()), err=err)


def print_first_rows(title: str, header: Sequence[str], rows: Sequence[Sequence[str | Text]], most: int) -> None:
    """Print the first rows of a table, and how many there are besides.

    Args:
        title: the title.
        header: names of the columns.
        rows: the rows.
        most: rows that are printed; ``--format json`` has all.
    """
    print_table(title, header, rows[:most])
    if len(rows) > most:
        echo(f"and {len(rows) - most} more; --format json shows all")


def console(stream: TextIO | None = None) -> Console:
    """Return a console with the width of the terminal, or 160 columns in a pipe.

    Args:
        stream: output stream; standard output if None.
    """
    stream = stream or sys.stdout
    width = shutil.get_terminal_size((160, 24)).columns if stream.isatty() else 160
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def xy_chart(title: str, x_title: str, y_title: str, **options: Any) -> Any:
    """Return an empty chart of points.

    Args:
        title: title.
        x_title: what is shown to the right, with its unit.
        y_title: what is shown upwards, with its unit.
        options: further options of ``pygal.XY``.
    """
    # Only here: no other command waits for it.
    import pygal

    return pygal.XY(
        title=title, x_title=x_title, y_title=y_title, width=900, height=450, include_x_axis=True, **options
    )


def write_chart(file: Path, chart: Any) -> None:
    """Write a chart.

    Raises:
        HeadroomError: the file cannot be written, or another kind of file exists there.
    """
    write_own(file, chart.render(is_unicode=True), lambda content: b"<svg" in content[:_BEGINNING], "a chart")
