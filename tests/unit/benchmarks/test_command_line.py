"""Options reach their group, are refused before anything starts, and are recorded as a command that can be typed."""

from __future__ import annotations

import shlex
from dataclasses import Field, dataclass, fields, replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks import run as bench
from benchmarks.catalogue import GROUPS, BenchGroup
from benchmarks.groups.alert_latency import SwitchOptions
from benchmarks.groups.balance.group import _PARTS, BalanceOptions
from benchmarks.groups.large_moves.group import LargeMovesOptions
from benchmarks.groups.plan.group import PlanTimeOptions
from benchmarks.groups.scale.group import ScaleOptions
from benchmarks.groups.seeded_faults.group import SeededOptions
from benchmarks.options.command import command, value_text
from benchmarks.options.fields import KIND, PARTITIONS, CommaSeparated, flag, option
from benchmarks.options.replaced_variables import REPLACED
from benchmarks.results import Figure, Origin
from headroom.schemas.errors import HeadroomError
from tests.support.paths import REPOSITORY

Planned = list[tuple[str, Any]]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """What would be measured: names of groups, and their options."""
    measured: Planned = []
    monkeypatch.setattr(bench, "measure_groups", lambda groups: measured.extend((g.name, o) for g, o in groups))
    for name in REPLACED:
        monkeypatch.delenv(name, raising=False)
    return measured


def invoke(line: str) -> Result:
    return CliRunner().invoke(bench.run, shlex.split(line), catch_exceptions=False)


def test_without_a_group_all_are_measured_in_the_order_of_the_catalogue(planned: Planned) -> None:
    assert invoke("").exit_code == 0
    assert planned == [(name, group.options()) for name, group in GROUPS.items()]


@pytest.mark.parametrize("line", ["scale", "--only scale"])
def test_one_group_is_measured_with_its_defaults(planned: Planned, line: str) -> None:
    assert invoke(line).exit_code == 0
    assert planned == [("scale", ScaleOptions((2000, 20_000, 100_000, 200_000), "2g"))]


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("scale --partitions 200000", ScaleOptions(partitions=(200_000,))),
        ("scale --partitions 2000,4000 --driver-memory 4g", ScaleOptions((2000, 4000), "4g")),
        ("switch --switches 0 --cold-switches 3", SwitchOptions(0, 3)),
        ("plan --parts lists,time,lists", PlanTimeOptions(parts=("lists", "time"))),
        ("seeded --faults unit --commit HEAD~3 --clean", SeededOptions("unit", "HEAD~3", True)),
        ("large_moves --scenes large,near:2 --each 1", LargeMovesOptions("large,near:2", 1)),
        ("balance --assigner-folder /tmp/an-environment", BalanceOptions(assigner_folder="/tmp/an-environment")),
    ],
)
def test_options_reach_their_group_and_the_recorded_command_gives_them_again(
    planned: Planned, line: str, options: object
) -> None:
    assert invoke(line).exit_code == 0
    name = line.split()[0]
    assert planned == [(name, options)]
    recorded = variables(bench.make_command(name, options))
    assert invoke(f"{recorded['ONLY']} {recorded['OPTIONS']}").exit_code == 0
    assert planned[1:] == planned[:1]


def variables(text: str) -> dict[str, str]:
    """Return the variables of a command of make."""
    words = shlex.split(text)
    assert words[:2] == ["make", "bench"]
    return dict(word.split("=", 1) for word in words[2:])


def test_the_recorded_command_has_only_what_differs_from_the_defaults() -> None:
    assert bench.make_command("switch", SwitchOptions()) == "make bench ONLY=switch"
    assert bench.make_command("switch", SwitchOptions(10)) == 'make bench ONLY=switch OPTIONS="--switches 10"'
    memory = replace(GROUPS["memory"].options(), length_s=60.0, interval_s=2.5)
    assert bench.make_command("memory", memory).endswith('OPTIONS="--length-s 60 --interval-s 2.5"')


def test_make_hands_group_and_options_over() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert "-m benchmarks.run $(ONLY) $(OPTIONS)\n" in makefile


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("scale --partitions many", "'many' is not a whole number"),
        ("scale --partitions 2000,,4000", "is not a whole number"),
        ("scale --partitions 200", "200 is not allowed: the number must be at least 1000"),
        ("scale --driver-memory 2", "'2' is not the size of a heap"),
        ("scale --partition 2000", "No such option"),
        ("start --starts 0", "0 is not allowed: the number must be at least 1"),
        ("damages --rounds 6", "6 is not allowed: the number must be from 1 to 5"),
        ("idle --length-s nan", "'nan' is not seconds"),
        ("precision --stock-for-ratio 0", "'0' is not above 0"),
        ("plan --parts time,list", "there is no 'list'. Choose from time, generate, lists, needs."),
        ("large_moves --scenes lage", "there is no scene 'lage'; there are large, short,"),
        ("outages --scenarios kill_wach", "there is no scenario 'kill_wach'; there are kill_collector,"),
        ("seeded --faults unti", "there is no fault unti; there are "),
        ("guard scale", "unexpected extra argument"),
        ("scael", "No such command 'scael'"),
        ("--only scael", "'scael' is not one of 'switch',"),
        ("--only idle scale", "--only idle and scale both name a group"),
        ("--partitions 2000", "No such option"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_starts(planned: Planned, line: str, message: str) -> None:
    refused = invoke(line)
    assert refused.exit_code == 2
    assert message in refused.output
    assert planned == []


def test_a_variable_that_an_option_has_replaced_is_refused(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_PARTITIONS", "2000")
    monkeypatch.setenv("BENCH_SEEDED_CLEAN", "1")
    monkeypatch.setenv("BENCH_OF_ANOTHER_PROGRAM", "1")
    refused = invoke("switch")
    assert refused.exit_code == 2
    assert "BENCH_PARTITIONS is set" in refused.output
    assert "use scale --partitions or standalone --partitions\n" in refused.output
    assert "use seeded --clean\n" in refused.output
    assert "ANOTHER" not in refused.output
    assert planned == []


def flags(group: BenchGroup[Any]) -> set[str]:
    made = command(group.name, group.options, lambda options: None, "")
    return {f"{group.name} {name}" for parameter in made.params for name in parameter.opts}


def test_every_replacement_of_a_variable_is_an_option() -> None:
    known = set().union(*map(flags, GROUPS.values()))
    assert {option for options in REPLACED.values() for option in options} - known == set()


EVERY_OPTION = [
    pytest.param(one, id=f"{group.name} {one.name}")
    for group in GROUPS.values()
    for one in fields(group.options)
    if one.default is not None and one.default is not False
]


@pytest.mark.parametrize("one", EVERY_OPTION)
def test_a_default_is_a_value_that_may_be_given(one: Field[Any]) -> None:
    assert one.metadata[KIND].convert(value_text(one.default), None, None) == one.default


def test_every_part_that_may_be_chosen_can_be_measured() -> None:
    assert set(BalanceOptions().parts) == _PARTS.keys()


@pytest.mark.parametrize("name", GROUPS)
def test_the_help_of_a_group_has_its_question_and_its_options(name: str, planned: Planned) -> None:
    shown = " ".join(invoke(f"{name} --help").output.split())
    assert GROUPS[name].question in shown
    assert all(f"--{one.name.replace('_', '-')} " in shown for one in fields(GROUPS[name].options))
    assert planned == []


@dataclass(frozen=True)
class _Options:
    sizes: tuple[int, ...] = option((2000,), CommaSeparated(PARTITIONS), "Sizes.")
    fails: bool = flag("Fail.")


def _measure(on_progress: Any, options: _Options) -> list[Figure]:
    if options.fails:
        raise HeadroomError("benchmark", "nothing came", "Try again.")
    return [Figure("size", float(size), "partitions", 1) for size in options.sizes]


GROUP = BenchGroup("sizes", "Which sizes?", None, _measure, _Options)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Figure], Origin]]:
    """Return what would be stored; nothing is written, and signals stay as they are."""
    found: list[tuple[list[Figure], Origin]] = []
    monkeypatch.setattr(bench, "write", lambda figures, origin: found.append((figures, origin)))
    monkeypatch.setattr(bench.report, "write", lambda groups: None)
    monkeypatch.setattr(bench, "machine", lambda: "2 cores")
    monkeypatch.setattr(bench.signal, "signal", lambda number, handler: None)
    return found


def test_figures_are_stored_with_their_command(
    stored: list[tuple[list[Figure], Origin]], capsys: pytest.CaptureFixture[str]
) -> None:
    bench.measure_groups([(GROUP, _Options((4000, 5000)))])
    ((figures, origin),) = stored
    assert [figure.value for figure in figures] == [4000, 5000]
    assert origin.command == 'make bench ONLY=sizes OPTIONS="--sizes 4000,5000"'
    assert "== sizes" in capsys.readouterr().out


def test_a_group_that_fails_is_named_and_the_next_one_is_measured(
    stored: list[tuple[list[Figure], Origin]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        bench.measure_groups([(GROUP, _Options(fails=True)), (GROUP, _Options())])
    assert ended.value.code == 1
    assert len(stored) == 1
    assert "Failed: sizes" in capsys.readouterr().err
