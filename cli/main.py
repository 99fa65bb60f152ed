"""The ``headroom`` command: its subcommands, its exit codes, and how errors are printed."""

from __future__ import annotations

import errno
import importlib
import sys
from typing import Any

import click

from headroom.cli.common.logs import show_warnings
from headroom.cli.common.streams import prepare_streams
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# Name -> (module of headroom and attribute, line in the help). A module is imported only when its command is called,
# so that help is quick and needs neither Spark nor Kafka.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("cli.demo.command:demo", "Watch a throttled move fail and recover, or a topic migrate, on real brokers."),
    "init": ("cli.config.init:init", "Write a commented headroom.toml."),
    "check": ("cli.check.command:check", "Check connections, permissions and metrics; suggest a fix for each problem."),
    "watch": ("cli.watch.watch:watch", "Watch clusters: run collector, Delta tables and alerts together."),
    "collect": ("cli.watch.collect:collect", "Write a snapshot of the cluster to the ticks topic at every interval."),
    "run": ("cli.watch.run:run", "Run only the Spark jobs, also with spark-submit."),
    "maintain": ("cli.maintain.command:maintain", "Compact the Delta tables and delete expired days."),
    "alerts": ("cli.alerts.command:alerts", "Show active alerts; acknowledge or silence them."),
    "dashboard": (
        "cli.dashboard.command:dashboard",
        "Serve the page: will the move finish, when, why not, and what puts it right.",
    ),
    "report": (
        "cli.report.command:report",
        "Write what happened during a move as one HTML file, for the post-mortem.",
    ),
    "reassignments": (
        "cli.reassignment.command:reassignments",
        "Show running reassignments, and write them to a plan file.",
    ),
    "plan": ("cli.plan.command:plan", "Estimate a planned reassignment: throttle, time, and what would make it fail."),
    "balance": (
        "cli.balance.command:balance",
        "Score how evenly brokers carry their load; propose changes and their price.",
    ),
    "reassign": ("cli.reassign.command:reassign", "Run a reassignment plan, verify it, cancel it, or roll it back."),
    "throttle": ("cli.throttle.command:throttle", "Show, apply or clear replication throttles."),
    "elections": ("cli.elections.command:elections", "Plan preferred leader elections in small batches, and run them."),
    "migration": (
        "cli.migration.command:migration",
        "Plan a migration between clusters, translate offsets of groups, verify a mirror.",
    ),
    "cluster": ("cli.cluster.command:cluster", "Start or stop a real Kafka cluster on this machine."),
}

# 128 + SIGINT, as a shell reports a command that Ctrl-C has ended.
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A click group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which a new user needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(importlib.import_module(f"headroom.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; for an unknown one the usage error lists all commands."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}; there are {', '.join(COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the name of the command, and keep all arguments for ``invoke``."""
        ctx.obj = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if it fails and was to print JSON, the error is JSON on standard output too."""
        try:
            return super().invoke(ctx)
        except HeadroomError as error:
            _print_json_error(error, ctx)
            raise
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx is not None else ctx.command_path
            rule = error.format_message().removesuffix(".")
            _print_json_error(HeadroomError(command, rule, f"See: {command} --help"), ctx)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the help lines above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _print_json_error(error: HeadroomError, ctx: click.Context) -> None:
    # Only here: the help needs none of what prints results.
    from headroom.cli.common.output import print_json_error

    print_json_error(error, ctx.obj, ctx.meta)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headroom", prog_name="headroom")
def headroom() -> None:
    """Watch live Kafka partition reassignments: whether each will finish, why not, and which throttle is enough.

    \b
    See it work:           headroom demo
    On your own cluster:   headroom init; headroom check; headroom watch

    Headroom recommends. It changes a cluster only with --execute, after printing the change.

    Every command has its own help, with examples: headroom alerts --help
    """  # noqa: D301


def run(args: list[str] | None = None) -> int:
    """Run a command line and return its exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted.

    Args:
        args: arguments after the program's name; those of this process if None.
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
    except OSError as error:
        # A file has a name. What has none is the output, redirected to a full disk.
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        click.echo(f"headroom: the output cannot be written ({error.strerror})", err=True)
        return 1
    # click returns the code of ctx.exit() as the result. Other results are return values of commands, not exit codes.
    return result if isinstance(result, int) else 0


def main() -> None:
    """Run the command line of this process and exit with its code."""
    prepare_streams()
    sys.exit(run())


if __name__ == "__main__":
    main()
