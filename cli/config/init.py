"""``headroom init``: a commented settings file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from cli.common.output import echo
from cli.config.load import DEFAULT_FILE
from cli.config.template import commented_toml
from schemas.errors import HeadroomError


@click.command(short_help="Write a commented headroom.toml.")
@click.option("--config", "config", metavar="FILE", default=DEFAULT_FILE, show_default=True, help="The file to write.")
@click.option("--name", default="kafka", show_default=True, help="The cluster's name in every table and alert.")
@click.option(
    "--bootstrap-servers",
    metavar="HOST:PORT,...",
    default="localhost:9092",
    show_default=True,
    help="Brokers of the cluster to watch.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def init(config: str, name: str, bootstrap_servers: str, force: bool) -> None:
    """Write a headroom.toml that shows every setting with its meaning and default.

    \b
    Example:  headroom init --name orders --bootstrap-servers broker1:9092,broker2:9092
    Then:     headroom check
    """  # noqa: D301
    file = Path(config)
    try:
        # Mode x refuses in one step, so that two of us cannot both find the file missing.
        with file.open("w" if force else "x", encoding="utf-8") as output:
            output.write(commented_toml(name, bootstrap_servers))
    except FileExistsError:
        raise HeadroomError(str(file), "is there already", "Write over it with --force, or name another.") from None
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be written ({error.strerror})", "Name another by --config.") from None
    echo(f"Wrote {file}. See whether everything is within reach: headroom check --config {file}")
