"""Forms of the page that make a command: a move, and a proposal of a balance."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from headroom.dashboard.acting.allowed import AllowedCommand, allowed_command
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import printable


class FormField(NamedTuple):
    """One field of a form.

    Attributes:
        option: option of the command that it gives.
        label: what it is called.
        hint: what may be written there; empty for one that is ticked.
    """

    option: str
    label: str
    hint: str = ""

    @property
    def name(self) -> str:
        """Return its key in an address."""
        return self.option.removeprefix("--").replace("-", "_")

    @property
    def is_flag(self) -> bool:
        """Return whether it is ticked, and has no text."""
        return not self.hint


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
        takes_plan: whether a plan is given with it.
    """

    title: str
    lead: str
    words: tuple[str, ...]
    submit: str
    groups: Sequence[FormGroup]
    needs: Sequence[str] = ()
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
        fields = {field.name: field for group in self.groups for field in group.fields}
        words: list[str] = []
        for name, text in values.items():
            field, value = fields.get(name), text.strip()
            if field is None:
                rule = f"is not a field of {self.title}"
                raise HeadroomError(printable(name), rule, f"There are: {', '.join(fields)}.")
            if not value:
                continue
            given = [field.option] if field.is_flag else [field.option, value]
            if self._read([*words, *given], config) is None:
                raise HeadroomError(field.label, "has a value that no option can have", f"Write {field.hint}.")
            words += given
        if self.needs and not any(fields[name].option in words for name in self.needs):
            wanted = ", ".join(fields[name].label.lower() for name in self.needs)
            raise HeadroomError(self.title, "says nothing of what is wanted", f"Fill in one of: {wanted}.")
        command = self._read(words, config)
        if command is None:
            raise HeadroomError(self.title, "has more text than a command can have", "Name fewer topics.")
        return replace(command, plan_digest=plan_digest)

    def _read(self, words: Sequence[str], config: str | None) -> AllowedCommand | None:
        return allowed_command(shlex.join(["headroom", *self.words, *words]), config)

    def values(self, command: AllowedCommand) -> dict[str, str] | None:
        """Return the values of a command by name of the field; None if it is not of this form."""
        if command.words[: len(self.words)] != self.words or self.takes_plan is (command.plan_digest is None):
            return None
        fields = {field.option: field for group in self.groups for field in group.fields}
        values: dict[str, str] = {}
        rest = iter(command.words[len(self.words) :])
        for word in rest:
            field = fields.get(word)
            if field is None:
                # Of an alert, which may have other options.
                return None
            values[field.name] = "on" if field.is_flag else next(rest)
        return values


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
}
