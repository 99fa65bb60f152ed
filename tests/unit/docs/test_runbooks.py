"""The runbooks are complete: one page per kind with the same headings, valid links, existing commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from headroom.cli.main import headroom
from headroom.schemas.alerts import AlertKind

RUNBOOKS = Path(__file__).resolve().parents[3] / "docs" / "runbooks"
INDEX = RUNBOOKS / "README.md"
PAGES = [page for page in sorted(RUNBOOKS.glob("*.md")) if page != INDEX]
ALERTS = RUNBOOKS.parent / "alerts.md"
ALL = [INDEX, *PAGES, ALERTS]
HEADINGS = [
    "What it means",
    "How to confirm it",
    "What to do",
    "What can go wrong",
    "When it resolves",
    "Settings",
]
LONGEST = 70
# The options that pages use, as the option classes of Kafka 4.3.1's tools have them.
KAFKA_OPTIONS = {
    "kafka-cluster.sh": {"--bootstrap-server", "--include-fenced-brokers"},
    "kafka-configs.sh": {
        "--add-config",
        "--all",
        "--alter",
        "--bootstrap-server",
        "--delete-config",
        "--describe",
        "--entity-default",
        "--entity-name",
        "--entity-type",
    },
    "kafka-consumer-groups.sh": {"--all-groups", "--bootstrap-server", "--describe", "--group"},
    "kafka-get-offsets.sh": {"--bootstrap-server", "--topic"},
    "kafka-jmx.sh": {"--jmx-url", "--object-name", "--one-time"},
    "kafka-leader-election.sh": {
        "--bootstrap-server",
        "--election-type",
        "--partition",
        "--path-to-json-file",
        "--topic",
    },
    "kafka-log-dirs.sh": {"--bootstrap-server", "--broker-list", "--describe", "--topic-list"},
    "kafka-reassign-partitions.sh": {
        "--additional",
        "--bootstrap-server",
        "--cancel",
        "--execute",
        "--list",
        "--preserve-throttles",
        "--reassignment-json-file",
        "--throttle",
        "--verify",
    },
    "kafka-topics.sh": {
        "--bootstrap-server",
        "--describe",
        "--topic",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
        "--under-replicated-partitions",
    },
}
_FENCE = re.compile(r"^ *```\w*$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def blocks(page: Path) -> list[str]:
    """Return the code blocks of a page."""
    return _FENCE.split(page.read_text(encoding="utf-8"))[1::2]


def commands(pages: list[Path], program: str) -> list[str]:
    """Return the command lines in code blocks that call this program, or one whose name begins like it."""
    lines = {line.strip() for page in pages for block in blocks(page) for line in block.splitlines()}
    return sorted(line for line in lines if line.startswith(program))


def parse(shown: str) -> None:
    """Parse a command line of Headroom with its values, as the command itself would, without running it."""
    args = shlex.split(shown, comments=True)[1:]
    command: click.Command = headroom
    context = click.Context(headroom)
    # A group may be a command itself, with options in place of a command's name.
    while isinstance(command, click.Group) and not (
        command.invoke_without_command and (not args or args[0].startswith("-"))
    ):
        _, found, args = command.resolve_command(context, args)
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    command.make_context(command.name, args, parent=context.parent)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page that lead to no file, or to no heading of it."""
    broken = []
    for path, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}" if anchor else path)
    return broken


@pytest.mark.parametrize("kind", [kind.value for kind in AlertKind])
def test_every_kind_has_a_page_and_its_line_in_the_index(kind: str) -> None:
    assert (RUNBOOKS / f"{kind}.md").exists()
    assert f"| [`{kind}`]({kind}.md) |" in INDEX.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [kind.value for kind in AlertKind])
def test_every_kind_has_its_section_in_the_page_of_alerts_which_ends_with_its_runbook(kind: str) -> None:
    sections = re.split(r"^## (.+)$", ALERTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sections.count(kind) == 1
    assert sections[sections.index(kind) + 1].strip().endswith(f"Runbook: [{kind}](runbooks/{kind}.md).")


def test_the_page_of_alerts_gives_the_number_of_kinds() -> None:
    assert f"Headroom raises {len(AlertKind)} kinds of alert." in ALERTS.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_the_same_headings_and_is_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert len(text.splitlines()) <= LONGEST


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_begins_with_the_alerts_text_and_is_in_the_index_and_in_the_page_of_alerts(page: Path) -> None:
    assert "## What it means\n\n> " in page.read_text(encoding="utf-8")
    assert f"]({page.name})" in INDEX.read_text(encoding="utf-8")
    assert f"](runbooks/{page.name})" in ALERTS.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("shown", commands(ALL, "headroom "))
def test_every_command_of_headroom_can_be_parsed(shown: str) -> None:
    parse(shown)


@pytest.mark.parametrize("shown", commands(ALL, "kafka-"))
def test_every_command_of_kafka_has_options_of_that_tool(shown: str) -> None:
    tool, *words = shlex.split(shown, comments=True)
    assert {word for word in words if word.startswith("--")} <= KAFKA_OPTIONS[tool]


def test_an_unknown_command_option_or_value_is_refused() -> None:
    for wrong in ("headroom throttle appply", "headroom throttle show --all", "headroom throttle apply --rate fast"):
        with pytest.raises(click.UsageError):
            parse(wrong)


def test_a_link_to_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One heading\n[a](#one-heading) [b](#another) [c](gone.md)\n", encoding="utf-8")
    assert broken_links(page) == ["#another", "gone.md"]
