"""The ``headroom`` command: its groups, its exit codes, and how errors are told."""

from __future__ import annotations

import importlib
import sys

import click

from cli.common.logs import show_warnings
from schemas.errors import HeadroomError
from schemas.text import one_line

# Name -> (where the command stands, its line in the help). A module is imported only when its command is called, so
# that help is quick and needs neither Spark nor Kafka.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("cli.demo.command:demo", "Watch a throttled move go wrong and be put right, on a real cluster."),
    "init": ("cli.config.init:init", "Write a commented headroom.toml."),
    "check": ("cli.check.command:check", "Say whether everything Headroom needs is within reach."),
    "watch": ("cli.watch.watch:watch", "Watch a cluster: collector, Delta tables and alerts in one."),
    "collect": ("cli.watch.collect:collect", "Send a snapshot of the cluster to the ticks topic, again and again."),
    "run": ("cli.watch.run:run", "Run the Spark jobs alone, also by spark-submit."),
    "maintain": ("cli.maintain.command:maintain", "Compact the Delta tables and drop what is no longer kept."),
    "alerts": ("cli.alerts.command:alerts", "Show the alerts that stand; acknowledge or silence them."),
    "reassignments": (
        "cli.reassignment.command:reassignments",
        "Show the reassignments that are running, and write them to a plan file.",
    ),
    "throttle": ("cli.throttle.command:throttle", "Show, apply or clear replication throttles."),
    "elections": ("cli.elections.command:elections", "Plan preferred leader elections in small batches, and run them."),
    "cluster": ("cli.cluster.command:cluster", "Start or stop a real Kafka cluster on this machine."),
}

INTERRUPTED = 130


class LazyGroup(click.Group):
    """A click group that knows its commands' names and help lines without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of a first use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, imported now; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; a usage error lists the commands there are."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}; there are {', '.join(COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from their known help lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headroom", prog_name="headroom")
def headroom() -> None:
    """Tell, during a live Kafka partition reassignment, whether the move will finish, why not, and which throttle
    puts it right.

    \b
    See it work:             headroom demo
    On a cluster of yours:   headroom init; headroom check; headroom watch

    Headroom recommends. It changes a cluster only with --execute, after printing what it will do.

    Every command has its own help, with examples: headroom alerts --help
    """  # noqa: D301


def run(args: list[str] | None = None) -> int:
    """Return the exit code of the command line: 0 done, 1 it could not, 2 wrong use, 130 interrupted.

    Args:
        args: the arguments after the program's name; None: those of this process.
    """
    show_warnings()
    try:
        result = headroom.main(args=args, prog_name="headroom", standalone_mode=False)
    except HeadroomError as error:
        click.echo(f"headroom: {one_line(str(error))}", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    # click hands back the code of ctx.exit() as the result; other results are none of the shell's business.
    return result if isinstance(result, int) else 0


def main() -> None:
    """Run the command line of this process and exit with its code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
