"""The commands that the page may carry out, read back from their text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from headroom.dashboard.acting.made import MADE_PLAN, MADE_PROPOSAL, Making

# Ids and names; no option, and no path to elsewhere.
_ARGUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,248}")
_LONGEST = 2000
# Name of a plan that somebody has given, in the folder of its action.
PLAN_FILE = "plan.json"
_PLAN = ("plan",)
_SETS_RATE = ("throttle", "apply")


@dataclass(frozen=True)
class CommandRule:
    """What one command may have.

    Attributes:
        options: its options, and whether each takes a value.
        most_arguments: most arguments beside its options.
        least_arguments: least arguments.
        needs: options that it must have.
        asks: whether it asks before it changes something, unless it is told not to.
        looks_first: whether it shows the change without ``--execute``.
        lasts: whether carrying it out may take hours.
        making: of a command that changes nothing: what it makes, and what carries that out.
    """

    options: Mapping[str, bool] = field(default_factory=dict)
    most_arguments: int = 0
    least_arguments: int = 0
    needs: Sequence[str] = ()
    asks: bool = False
    looks_first: bool = True
    lasts: bool = False
    making: Making | None = None


# Options that name files are in none of them: an alert's command comes from a table, which others may write.
ALLOWED: Mapping[tuple[str, ...], CommandRule] = {
    ("throttle", "apply"): CommandRule(
        {
            "--rate": True,
            "--log-dirs": True,
            "--brokers": True,
            "--role": True,
            "--raise-only": False,
            "--lists": False,
            "--low-rate": False,
        }
    ),
    ("throttle", "clear"): CommandRule({"--rates": False, "--lists": False, "--cluster-default": False}),
    ("elections",): CommandRule({"--topics": True, "--brokers": True}, asks=True),
    ("reassign", "cancel"): CommandRule({"--all": False}, asks=True),
    ("reassign", "clean"): CommandRule(most_arguments=50),
    ("reassign", "rollback"): CommandRule(
        {"--throttle": True, "--low-rate": False}, most_arguments=1, least_arguments=1, asks=True, lasts=True
    ),
    ("alerts", "ack"): CommandRule({"--note": True}, most_arguments=1, least_arguments=1, looks_first=False),
    ("alerts", "silence"): CommandRule(
        {"--cluster": True, "--kind": True, "--subject": True, "--for": True, "--note": True},
        needs=("--cluster", "--kind", "--subject"),
        looks_first=False,
    ),
    # Without --drop, which cannot be undone, and without what gives records up: those are for a terminal.
    ("migration", "run"): CommandRule(
        {"--name": True, "--method": True, "--router": True, "--until": True, "--unless-running": False},
        most_arguments=50,
        least_arguments=1,
        needs=("--name", "--method"),
        lasts=True,
    ),
    ("migration", "shield"): CommandRule({"--name": True, "--off": False}, needs=("--name",)),
    ("migration", "cancel"): CommandRule({"--name": True}, needs=("--name",)),
    _PLAN: CommandRule(
        {
            "--topics": True,
            "--to-brokers": True,
            "--replication-factor": True,
            "--drain": True,
            "--replace": True,
            "--reorder": False,
            "--disable-rack-aware": False,
            "--batches": True,
            "--max-throttle": True,
            "--window": True,
            "--throttle": True,
            "--log-dirs-throttle": True,
            "--finish-within": True,
        },
        asks=True,
        making=MADE_PLAN,
    ),
    ("balance", "propose"): CommandRule(
        {
            "--goals": True,
            "--topics": True,
            "--exclude": True,
            "--max-bytes": True,
            "--max-moves": True,
            "--elections-only": False,
            "--throttle": True,
            "--finish-within": True,
            "--prefix": True,
            "--until-in-band": True,
        },
        asks=True,
        making=MADE_PROPOSAL,
    ),
}


@dataclass(frozen=True)
class AllowedCommand:
    """A command that the page may carry out.

    Attributes:
        words: its words after ``headroom``, without settings file and ``--execute``.
        config: settings file; None: the default one.
        plan_digest: digest of a plan that somebody has given, which is in the folder of the action; None: it has none.
    """

    words: tuple[str, ...]
    config: str | None
    plan_digest: str | None = None

    @property
    def looks_first(self) -> bool:
        """Return whether it shows what it would change."""
        return self._rule.looks_first

    @property
    def is_made(self) -> bool:
        """Return whether it makes what is then carried out, so that the same can go on after an interruption."""
        return self._making is not None

    @property
    def sets_rate(self) -> bool:
        """Return whether it sets a throttle, which follows from a tick, and may do harm at a later one."""
        return self.words[:2] == _SETS_RATE

    @property
    def lasts(self) -> bool:
        """Return whether carrying it out may take hours: a move, or a migration that waits for its producers."""
        return self._rule.lasts or self.is_made

    def look(self, folder: Path) -> list[str]:
        """Return the arguments that show what it would change.

        Args:
            folder: folder of the action, for what it makes.
        """
        files = [] if self._making is None else self._making.arguments(folder)
        return [*self._with_config(folder), *files]

    def change(self, folder: Path) -> list[str] | None:
        """Return the arguments that change it, without a question; None if there is nothing to carry out.

        Args:
            folder: folder of the action, with what it has made.
        """
        words = self._carried_out(folder)
        return None if words is None else [*self._with_execute(words), *(["--yes"] if self._rule.asks else [])]

    @property
    def text(self) -> str:
        """Return the command that a shell would run for the same, where a plan that was given is."""
        return self.text_in(Path())

    def text_in(self, folder: Path) -> str:
        """Return the command that a shell would run for the same.

        Args:
            folder: folder of the action, with a plan that was given.
        """
        words = self._with_config(folder) if self.is_made else self._with_execute(self.words)
        return shlex.join(["headroom", *words])

    def change_text(self, folder: Path) -> str | None:
        """Return the command that a shell would run to carry it out; None if there is nothing to carry out.

        Args:
            folder: folder of the action, with what it has made.
        """
        words = self._carried_out(folder)
        return None if words is None else shlex.join(["headroom", *self._with_execute(words)])

    def forget_made(self, folder: Path) -> None:
        """Remove what it has made in the folder of its action, and a plan that was given."""
        with suppress(OSError):
            (folder / PLAN_FILE).unlink(missing_ok=True)
        if self._making is not None:
            self._making.forget(folder)

    @property
    def _rule(self) -> CommandRule:
        return _rule_of(self.words)[1]

    @property
    def _making(self) -> Making | None:
        return self._rule.making

    def _carried_out(self, folder: Path) -> Sequence[str] | None:
        return self.words if self._making is None else self._making.carried_out_by(folder)

    def _with_execute(self, words: Sequence[str]) -> list[str]:
        return [*words, *self._config(), *(["--execute"] if self.looks_first else [])]

    def _with_config(self, folder: Path) -> list[str]:
        given = [] if self.plan_digest is None else [str(folder / PLAN_FILE)]
        return [*self.words, *given, *self._config()]

    def _config(self) -> list[str]:
        return [] if self.config is None else ["--config", self.config]


def _rule_of(words: Sequence[str]) -> tuple[int, CommandRule]:
    """Return how many words name the command, and what it may have.

    Raises:
        LookupError: the page does not carry it out.
    """
    for length in (1, 2):
        rule = ALLOWED.get(tuple(words[:length]))
        if rule is not None:
            return length, rule
    raise LookupError(words)


def allowed_command(text: str, config: str | None, *, is_part: bool = False) -> AllowedCommand | None:
    """Return a command from its text; None if the page does not carry it out.

    Args:
        text: the command as it is shown.
        config: settings file of the cluster. A command with another one is not carried out.
        is_part: whether words that it needs may be missing, as they come later; then settings file and ``--execute`` do
            too.
    """
    try:
        # Half characters and what moves a cursor are of no command of Headroom.
        words = shlex.split(text) if len(text) <= _LONGEST and text.isprintable() else []
        if not words or words[0] != "headroom":
            return None
        length, rule = _rule_of(words[1:])
        kept = _own_words(words[1 + length :], rule, config, is_part=is_part)
    except (ValueError, LookupError):
        return None
    return None if kept is None else AllowedCommand((*words[1 : 1 + length], *kept), config)


def is_carried_out_itself(words: Sequence[str]) -> bool:
    """Return whether a command changes something by ``--execute``, and is not carried out by what it makes.

    Raises:
        LookupError: the page does not carry it out.
    """
    rule = _rule_of(words)[1]
    return rule.looks_first and rule.making is None


def is_allowed(command: AllowedCommand) -> bool:
    """Return whether the page carries out a command that was read back from the folder of its action."""
    own = replace(command, plan_digest=None)
    reads_plan = command.words[: len(_PLAN)] == _PLAN
    return allowed_command(own.text, own.config) == own and (command.plan_digest is None or reads_plan)


def _own_words(words: Sequence[str], rule: CommandRule, config: str | None, *, is_part: bool) -> list[str] | None:
    """Return options and arguments without settings file and ``--execute``; None if there is one that may not be."""
    kept: list[str] = []
    executes, arguments = False, 0
    rest = iter(words)
    for word in rest:
        if is_part and word in ("--execute", "--config"):
            return None
        if word == "--execute":
            executes = True
        elif word == "--config":
            if next(rest, "") != config:
                return None
        elif rule.making is not None and word in rule.making.options:
            # An action has a folder of its own.
            next(rest, "")
        elif word in rule.options:
            kept.append(word)
            if rule.options[word]:
                value = next(rest, "-")
                if not value or value.startswith("-"):
                    return None
                kept.append(value)
        elif _ARGUMENT.fullmatch(word):
            kept.append(word)
            arguments += 1
        else:
            return None
    # Without it, such a command is one that shows something.
    is_whole = rule.least_arguments <= arguments <= rule.most_arguments and all(one in kept for one in rule.needs)
    is_expected = executes == (rule.looks_first and rule.making is None)
    return kept if is_part or (is_expected and is_whole) else None
