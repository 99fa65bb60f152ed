"""``headroom cluster up|down``: a real Kafka cluster on this machine, for experiments."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import click

from headroom.cli.common.output import print_json_line
from headroom.cli.common.parameters import WholeNumber
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, describe, stop_recorded, write_config
from headroom.schemas.errors import HeadroomError

_STOP_GRACE_S = 10.0
_FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the cluster's data, logs and config.",
)


@click.group()
def cluster() -> None:
    """Start and stop a Kafka cluster on this machine, for experiments.

    \b
    Example:  headroom cluster up --dir try --brokers 3
              headroom watch --config try/headroom.toml
              headroom cluster down --dir try
    """  # noqa: D301


@cluster.command()
@_FOLDER
@click.option("--brokers", type=WholeNumber(1, 5), help="Number of brokers.  [default: that of the folder, or 3]")
@click.option(
    "--base-port",
    type=WholeNumber(1024, 65_000),
    help="Ports of broker i: clients +i, KRaft +10+i, JMX +20+i.  [default: those of the last start, or free ones]",
)
@click.option(
    "--agents", is_flag=True, help="Start brokers with the agents of Jolokia and jmx_exporter; ports +30+i and +40+i."
)
@click.option("--property", "properties", multiple=True, metavar="KEY=VALUE", help="Broker setting; may be repeated.")
@click.option("--foreground", is_flag=True, help="Keep running, and stop the brokers on Ctrl-C.")
def up(
    folder: Path,
    brokers: int | None,
    base_port: int | None,
    agents: bool,
    properties: tuple[str, ...],
    foreground: bool,
) -> None:
    """Start brokers, and print one JSON object when all are ready.

    Writes a headroom.toml for the cluster into the folder. A stopped cluster starts again with its data. The brokers
    run until `headroom cluster down`. If this command is interrupted during the start, it stops them.

    \b
    Example:  headroom cluster up --dir try --brokers 3
    """  # noqa: D301
    options = BrokerOptions(dict(map(_property, properties)), agents=agents)
    try:
        _start(EmbeddedCluster(folder, brokers, base_port, options), foreground)
    except OSError as error:
        rule = f"cannot be used ({error.strerror or type(error).__name__})"
        raise HeadroomError(f"--dir {folder}", rule, "Name a folder that this user may write to.") from None


def _start(embedded: EmbeddedCluster, foreground: bool) -> None:
    if foreground:
        with suppress(KeyboardInterrupt), embedded:
            _print(embedded)
            signal.pause()
    else:
        embedded.start()
        _print(embedded)
        # From here on the brokers outlive this command.
        embedded.detach()


@cluster.command()
@_FOLDER
def down(folder: Path) -> None:
    """Stop the brokers of a folder, and keep their data. Does nothing if they are already stopped."""
    stopped = stop_recorded(folder.resolve(), _STOP_GRACE_S)
    print_json_line({"dir": str(folder.resolve()), "stopped": stopped})


def _print(embedded: EmbeddedCluster) -> None:
    print_json_line(describe(embedded, write_config(embedded)))


def _property(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--property")
    return key, value


if __name__ == "__main__":
    cluster()
