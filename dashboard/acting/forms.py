"""Forms of the page that make a command: a move, a proposal of a balance, and a migration."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from headroom.dashboard.acting.allowed import AllowedCommand, allowed_command, is_carried_out_itself
from headroom.planning.migration.run.next_step import RunGoal
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import METHODS, MigrationMethod
from headroom.schemas.text import printable


class FormField(NamedTuple):
    """One field of a form.

    Attributes:
        option: option of the command that it gives; without dashes it gives arguments.
        label: what it is called.
        hint: what may be written there; empty for one that is ticked.
        choices: what may be chosen there, the usual one first; empty: any text.
        is_list: whether each of its values, which commas part, is given by itself.
    """

    option: str
    label: str
    hint: str = ""
    choices: Sequence[str] = ()
    is_list: bool = False

    @property
    def name(self) -> str:
        """Return its key in an address."""
        return self.option.removeprefix("--").replace("-", "_").lower()

    @property
    def is_flag(self) -> bool:
        """Return whether it is ticked, and has no text."""
        return not self.hint

    @property
    def is_argument(self) -> bool:
        """Return whether it gives arguments, and no option."""
        return not self.option.startswith("--")

    def words(self, value: str) -> list[str]:
        """Return the words of the command that a value gives."""
        if self.is_flag:
            return [self.option]
        values = [one.strip() for one in value.split(",")] if self.is_list else [value]
        return [word for one in values for word in ([one] if self.is_argument else [self.option, one])]


class FormGroup(NamedTuple):
    """Fields that belong together."""

    title: str
    fields: Sequence[FormField]


@dataclass(frozen=True)
class ActionForm:
    """A form that makes a command.

    Attributes:
        title: title.
        lead: what it is for.
        words: words of the command after ``headroom``.
        submit: text of its button.
        groups: its fields.
        needs: names of fields of which at least one is given; empty: none has to be.
        requires: names of fields that are all given.
        always: words that the command has whatever is filled in.
        takes_plan: whether a plan is given with it.
    """

    title: str
    lead: str
    words: tuple[str, ...]
    submit: str
    groups: Sequence[FormGroup]
    needs: Sequence[str] = ()
    requires: Sequence[str] = ()
    always: Sequence[str] = ()
    takes_plan: bool = False

    def command(self, values: Mapping[str, str], config: str | None, plan_digest: str | None = None) -> AllowedCommand:
        """Return the command with the values of the form; whether they make sense, the command itself says.

        Args:
            values: values by name of the field; what is empty is not given.
            config: settings file of the cluster.
            plan_digest: digest of the plan that is given with it; None if none is.

        Raises:
            HeadroomError: there is no such field, or a value that no option can have.
        """
        fields = {field.name: field for field in self._fields()}
        words: list[str] = []
        given: set[str] = set()
        for name, text in values.items():
            field, value = fields.get(name), text.strip()
            if field is None:
                rule = f"is not a field of {self.title}"
                raise HeadroomError(printable(name), rule, f"There are: {', '.join(fields)}.")
            if not value:
                continue
            further = field.words(value)
            can_be = value in field.choices if field.choices else not (field.is_argument and _has_option(further))
            if not can_be or self._read([*words, *further], config, is_part=True) is None:
                raise HeadroomError(field.label, "has a value that no option can have", f"Write {field.hint}.")
            words += further
            given.add(name)
        missing = next((fields[name] for name in self.requires if name not in given), None)
        if missing is not None:
            raise HeadroomError(missing.label, "is not filled in", f"Write {missing.hint}.")
        if self.needs and given.isdisjoint(self.needs):
            wanted = ", ".join(fields[name].label.lower() for name in self.needs)
            raise HeadroomError(self.title, "says nothing of what is wanted", f"Fill in one of: {wanted}.")
        command = self._read([*words, *self.always], config)
        if command is None:
            raise HeadroomError(self.title, "has more text than a command can have", "Name fewer topics.")
        return replace(command, plan_digest=plan_digest)

    def _fields(self) -> list[FormField]:
        return [field for group in self.groups for field in group.fields]

    def _read(self, words: Sequence[str], config: str | None, *, is_part: bool = False) -> AllowedCommand | None:
        executes = ["--execute"] * (not is_part and is_carried_out_itself(self.words))
        return allowed_command(shlex.join(["headroom", *self.words, *words, *executes]), config, is_part=is_part)

    def values(self, command: AllowedCommand) -> dict[str, str] | None:
        """Return the values of a command by name of the field; None if it is not of this form."""
        if command.words[: len(self.words)] != self.words or self.takes_plan is (command.plan_digest is None):
            return None
        fields = {field.option: field for field in self._fields()}
        argument = next((field for field in self._fields() if field.is_argument), None)
        values: dict[str, list[str]] = {}
        rest = iter(command.words[len(self.words) :])
        for word in rest:
            if word in self.always:
                continue
            field = fields.get(word)
            if field is not None:
                values.setdefault(field.name, []).append("on" if field.is_flag else next(rest))
            elif argument is not None and not word.startswith("--"):
                values.setdefault(argument.name, []).append(word)
            else:
                # Of an alert, which may have other options.
                return None
        return {name: ",".join(own) for name, own in values.items()}


def _has_option(words: Sequence[str]) -> bool:
    return any(word.startswith("-") for word in words)


def _with_first(choices: Sequence[str], first: str) -> Sequence[str]:
    return [first, *(one for one in choices if one != first)]


_TOPICS = FormField("--topics", "Topics", "names such as orders,payments; empty: all")
_FINISH = FormField("--finish-within", "Finish within", "a duration such as 2h")
_DIRECTORIES = FormField("--log-dirs-throttle", "Between directories", "a rate such as 50MB, of each broker")
_HOW_FAST = (
    FormField("--throttle", "Throttle", "a rate such as 50MB; empty: the recommended one"),
    _FINISH,
    FormField("--max-throttle", "Throttle at most", "a rate such as 50MB; batches are cut to fit it"),
    FormField("--batches", "Batches", "a number, or auto"),
    FormField("--window", "No batch longer than", "a window such as 22:00-06:00 Europe/Berlin"),
)


class FormName(str, Enum):
    """The forms, by their paths."""

    MOVE = "move"
    FILE = "file"
    BALANCE = "balance"
    MIGRATION = "migration"


FORMS: Mapping[FormName, ActionForm] = {
    FormName.MOVE: ActionForm(
        "New move",
        "The plan with the fewest copies is made, with its price: throttle, time, bottleneck, and what a leader switch "
        "would do to it. Nothing is changed before you have seen it.",
        ("plan",),
        "Show the plan",
        (
            FormGroup(
                "What is to be moved",
                (
                    _TOPICS,
                    FormField("--drain", "Drain brokers", "ids such as 3,4; all replicas leave them"),
                    FormField("--replace", "Replace brokers", "pairs such as 3:7; 7 gets what 3 has"),
                    FormField("--to-brokers", "Spread over brokers", "ids such as 1,2,3,4"),
                    FormField("--replication-factor", "Replication factor", "a number such as 3"),
                    FormField("--reorder", "Spread preferred leaders"),
                    FormField("--disable-rack-aware", "Ignore racks"),
                ),
            ),
            FormGroup("How fast", _HOW_FAST),
        ),
        needs=("drain", "replace", "to_brokers", "replication_factor", "reorder"),
    ),
    FormName.FILE: ActionForm(
        "Move from a file",
        "A plan that you have is checked and priced: throttle, time, bottleneck, batches, and what a leader switch "
        "would do to it. Nothing is changed before you have seen it.",
        ("plan",),
        "Show the plan",
        (FormGroup("How fast", (*_HOW_FAST, _DIRECTORIES)),),
        takes_plan=True,
    ),
    FormName.BALANCE: ActionForm(
        "Balance",
        "Changes that bring brokers into their bands are proposed, those that gain most for each byte first, with what "
        "every prefix of the list gains, copies and takes. Nothing is changed before you have seen it.",
        ("balance", "propose"),
        "Show the proposal",
        (
            FormGroup(
                "What may be changed",
                (
                    FormField("--prefix", "Only the first actions", "how many, such as 3; empty: all"),
                    _TOPICS,
                    FormField("--exclude", "Leave alone", "topics and brokers such as payments,broker:3"),
                    FormField("--goals", "Goals", "names such as disk,leaders; empty: those of balance.goals"),
                    FormField("--elections-only", "Only elections, which copy nothing"),
                ),
            ),
            FormGroup(
                "What it may cost",
                (
                    FormField("--max-bytes", "Copy at most", "a size such as 500GB"),
                    FormField("--max-moves", "Move replicas at most", "a number"),
                    FormField("--throttle", "Throttle", "a rate such as 50MB"),
                    _FINISH,
                ),
            ),
        ),
    ),
    FormName.MIGRATION: ActionForm(
        "New migration",
        "Where each partition would switch from the origin to this cluster and when, who has yet to read the origin, "
        "what retention deletes before, and what forbids it, is shown. Nothing is changed before you have seen it.",
        ("migration", "run"),
        "Show the migration",
        (
            FormGroup(
                "What migrates",
                (
                    FormField("TOPIC", "Topics", "names of the origin such as orders,payments", is_list=True),
                    FormField("--name", "Name", "any name for this migration, such as move"),
                    FormField(
                        "--method",
                        "Method",
                        "how records get here: drained, producers are moved by hand; routed, by headroom.routing; "
                        "mirrored, by MirrorMaker 2; linked, with the same offsets",
                        _with_first(METHODS, MigrationMethod.DRAINED.value),
                    ),
                    FormField(
                        "--router",
                        "Routers that have to agree",
                        "of the method routed: names such as shop-1,billing-1",
                        is_list=True,
                    ),
                ),
            ),
            FormGroup(
                "How far",
                (
                    FormField(
                        "--until",
                        "Until",
                        "started: this cluster is in use; migrated: the origin is at its end offsets; aged: retention "
                        "has deleted all before them",
                        _with_first([goal.value for goal in RunGoal], RunGoal.MIGRATED.value),
                    ),
                ),
            ),
        ),
        requires=("topic", "name", "method"),
        # Nobody ends the run of another unawares.
        always=("--unless-running",),
    ),
}
