"""``headroom init``: write a commented settings file with all defaults."""

from __future__ import annotations

from pathlib import Path

import click

from headroom.cli.common.output import echo
from headroom.cli.common.parameters import Servers
from headroom.cli.config.load import DEFAULT_FILE
from headroom.cli.config.problem import SettingError
from headroom.cli.config.template import commented_toml
from headroom.cli.config.validation import require_rules
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import shell_quoted


@click.command(short_help="Write a commented headroom.toml.")
@click.option("--config", "config", metavar="FILE", default=DEFAULT_FILE, show_default=True, help="File to write.")
@click.option("--name", default="kafka", show_default=True, help="Name of the cluster in tables and alerts.")
@click.option(
    "--bootstrap-servers",
    type=Servers(),
    metavar="HOST:PORT,...",
    default="localhost:9092",
    show_default=True,
    help="Brokers of the cluster to watch.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(config: str, name: str, bootstrap_servers: str, force: bool) -> None:
    """Write a headroom.toml that shows every setting with its meaning and default.

    \b
    Example:  headroom init --name orders --bootstrap-servers broker1:9092,broker2:9092
    Then:     headroom check
    """  # noqa: D301
    file = Path(config)
    try:
        require_rules(Settings(cluster=ClusterSettings(name=name, bootstrap_servers=bootstrap_servers)))
    except SettingError as error:
        raise HeadroomError("--name", error.rule, error.remedy) from None
    try:
        # Mode x checks and creates in one step, so that two processes cannot both find the file missing.
        with file.open("w" if force else "x", encoding="utf-8") as output:
            output.write(commented_toml(name, bootstrap_servers))
    except FileExistsError:
        raise HeadroomError(str(file), "exists already", "Overwrite it with --force, or name another.") from None
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be written ({error.strerror})", "Name another by --config.") from None
    echo(f"Wrote {file}. Check connections and permissions next: headroom check --config {shell_quoted(config)}")
