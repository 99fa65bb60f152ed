"""Every option and every setting takes a quantity as a whole, by the one grammar."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headroom.cli.balance.parameters import ExclusionList, GoalNames
from headroom.cli.common.parameters import BrokerIds, Quantity, TopicName, TopicNames
from headroom.cli.config.load import read_settings
from headroom.cli.config.sources import all_keys, env_name
from headroom.cli.config.values import reader_of, type_of
from headroom.cli.main import headroom
from headroom.schemas.errors import HeadroomError
from tests.support.paths import REPOSITORY

# Options and arguments that take any text: what it means, no grammar can say.
FREE = {
    *("config", "configs", "name", "note", "by", "subject", "cluster", "group"),
    *("routers", "alert_id", "silence_id", "run_id", "run_ids", "fingerprint", "properties"),
}
# A part of each of these is a quantity.
WRONG = (
    *("12,5", "1.2.3", "1_0", "１２", "12 per broker", "nan", "inf", "1e3", "-1", "+1", "0x10", ".5", "5.", "1 2", "²"),
    *("true false", "1d;", "2026-11-22T22:00Zulu", "22:00-06:00 UTC+", "1:2,", "h:1;i:2"),
)
WRONG_NAMES = ("", "a b", "a,,b", "a,", ",a", "a;b", "ä", "a*", "a b:c")
NAMES = (TopicName, TopicNames, GoalNames, ExclusionList)


def commands(found: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, found
    if isinstance(found, click.Group):
        context = click.Context(found)
        for name in found.list_commands(context):
            inner = found.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*words, name))


PARAMETERS = [(" ".join(words), parameter) for words, command in commands(headroom) for parameter in command.params]


def test_every_option_takes_a_choice_a_path_a_quantity_or_any_text() -> None:
    others = {
        f"{words}: {parameter.name}": type(parameter.type).__name__
        for words, parameter in PARAMETERS
        if not isinstance(parameter.type, (Quantity, click.Choice, click.Path))
        and not getattr(parameter, "is_flag", False)
        and parameter.name not in FREE
    }
    assert others == {}


QUANTITIES = {(type(p.type), p.name): p for _, p in PARAMETERS if isinstance(p.type, Quantity)}


def test_the_commands_have_options_of_every_kind() -> None:
    kinds = {kind.__name__ for kind, _ in QUANTITIES}
    assert {"Rate", "ByteCount", "Duration", "Moment", "WindowOfDay", "WholeNumber", "BrokerIds", "Servers"} <= kinds
    assert {"TopicNames", "GoalNames", "ExclusionList", "Replacements", "BatchNumber", "ChangeOfCluster"} <= kinds


@pytest.mark.parametrize("parameter", QUANTITIES.values(), ids=[str(name) for _, name in QUANTITIES])
def test_no_option_takes_a_part_of_a_text(parameter: click.Parameter) -> None:
    # Ids 12 and 5 are a list.
    wrong = WRONG_NAMES if isinstance(parameter.type, NAMES) else WRONG[isinstance(parameter.type, BrokerIds) :]
    for text in wrong:
        with pytest.raises(click.BadParameter):
            parameter.type.convert(text, parameter, None)


NUMBERS = [key for key in all_keys() if type_of(key) in (bool, int, float)]


@pytest.mark.parametrize("key", NUMBERS, ids=[".".join(key) for key in NUMBERS])
def test_no_setting_takes_a_part_of_a_text(key: tuple[str, str]) -> None:
    for text in WRONG:
        with pytest.raises(ValueError, match=r"'.*' is n.*\. \w"):
            reader_of(key)(text)


@pytest.mark.parametrize("key", NUMBERS, ids=[".".join(key) for key in NUMBERS])
def test_a_setting_names_itself_what_was_written_and_what_to_write(key: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "headroom.toml"
    file.write_text("")
    with pytest.raises(HeadroomError, match=f"{env_name(key)}.*'12 per broker' is n") as caught:
        read_settings(str(file), {env_name(key): "12 per broker"})
    assert caught.value.remedy.endswith(".")
    section = "".join(f"[{key[0]}]\n{key[1]} = ")
    wrong = {bool: ("1", "1.0"), int: ("true", "4.0", "[1]"), float: ("true", "[1.0]", "2026-11-22")}[type_of(key)]
    for value in wrong:
        file.write_text(section + value)
        with pytest.raises(HeadroomError, match=r"is not (true or false|a whole number|a number)"):
            read_settings(str(file), {})


def test_no_module_matches_the_beginning_of_a_text() -> None:
    """A pattern that need not match the whole reads 12,5MB as 12. Only some lines of texts have an open end."""
    open_ended = {"cli/config/template.py", "streaming/supervision/failure.py"}
    found = {
        str(path.relative_to(REPOSITORY))
        for layer in ("schemas", "planning", "cluster", "alerts", "streaming", "operations", "dashboard", "cli")
        for path in (REPOSITORY / layer).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr == "match") or getattr(node, "id", "") == "ByteSize"
    }
    assert found == open_ended


def test_options_of_the_same_kind_are_of_the_same_type() -> None:
    """--throttle of one command is not stricter than that of another."""
    kinds: dict[tuple[str | None, bool], set[str]] = {}
    for words, parameter in PARAMETERS:
        # --brokers of `headroom cluster up` is a number, and of all others a list; --topic may be repeated.
        if isinstance(parameter.type, Quantity):
            own = words == "cluster up" or parameter.multiple
            kinds.setdefault((parameter.name, own), set()).add(type(parameter.type).__name__)
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}
