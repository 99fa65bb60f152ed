"""Options of ``headroom plan`` that say what is wanted, so that the plan is made."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

from headroom.cli.common.options import option_group
from headroom.cli.common.parameters import BrokerIds, Quantity, TopicNames, WholeNumber
from headroom.operations.files import read_json
from headroom.planning.reassignments.generation.request import PlanRequest
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import QuantityError, parse_id, parse_names, quote

_REPLACEMENT = re.compile(r"[0-9]+ *: *[0-9]+")
_SHOWN = 5
_FORMAT = 'The format is {"topics":[{"topic":"foo"}],"version":1}.'


@dataclass(frozen=True)
class MakingOptions:
    """Values of the options; None or false where one was not given.

    Attributes:
        topics: names of topics.
        topics_file: file with names of topics.
        to_brokers: brokers that may get replicas.
        replication_factor: number of replicas.
        drain: brokers to empty.
        replace: new broker by old one.
        reorder: whether first replicas may change.
        disable_rack_aware: whether racks are ignored.
        save_plan: file for the plan.
    """

    topics: list[str] | None
    topics_file: Path | None
    to_brokers: list[int] | None
    replication_factor: int | None
    drain: list[int] | None
    replace: dict[int, int] | None
    reorder: bool
    disable_rack_aware: bool
    save_plan: Path | None

    def request(self) -> PlanRequest | None:
        """Return the request; None if none of the options asks for a plan.

        Raises:
            click.UsageError: an option was given that only narrows a request, or topics were given twice.
            HeadroomError: the file of topics cannot be read.
        """
        goals = (self.to_brokers, self.replication_factor, self.drain, self.replace, self.reorder or None)
        if all(goal is None for goal in goals):
            # Silently without effect they would leave the operator with an estimate of something else.
            if self.topics or self.topics_file or self.disable_rack_aware or self.save_plan:
                raise click.UsageError(
                    "Say what is wanted: --to-brokers, --replication-factor, --drain, --replace or --reorder."
                )
            return None
        if self.topics and self.topics_file:
            raise click.UsageError("Give either --topics or --topics-file.")
        topics = self.topics if self.topics_file is None else read_topics(self.topics_file)
        return PlanRequest(
            topics=None if topics is None else frozenset(topics),
            to_brokers=None if self.to_brokers is None else frozenset(self.to_brokers),
            replication_factor=self.replication_factor,
            drain=frozenset(self.drain or ()),
            replace=self.replace or {},
            reorder=self.reorder,
            rack_aware=not self.disable_rack_aware,
        )


class Replacements(Quantity[dict[int, int]]):
    """Replacements of brokers: ``OLD:NEW`` separated by commas."""

    name = "replacements"

    def read(self, text: str) -> dict[int, int]:
        """Return the new broker by the old one."""
        pairs = parse_names(text, _REPLACEMENT, "OLD:NEW, separated by commas, such as 1:4,2:5")
        ids = [pair.split(":") for pair in pairs]
        replacements = {parse_id(old): parse_id(new) for old, new in ids}
        if len(replacements) < len(ids):
            raise QuantityError(f"{quote(text)} names an old broker twice", "Name each old broker once.")
        return replacements


_OPTIONS = (
    click.option("--topics", type=TopicNames(), metavar="A,B", help="Topics to plan for; default: all."),
    click.option(
        "--topics-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="File with these topics, in the format of kafka-reassign-partitions.sh --topics-to-move-json-file.",
    ),
    click.option(
        "--to-brokers", type=BrokerIds(), metavar="ID,...", help="Spread all replicas of the topics over these brokers."
    ),
    click.option(
        "--replication-factor",
        type=WholeNumber(least=1, most=32_767),
        metavar="N",
        help="Give every partition N replicas.",
    ),
    click.option(
        "--drain",
        type=BrokerIds(),
        metavar="ID,...",
        help="Move all replicas away from these brokers; with --to-brokers, to those.",
    ),
    click.option(
        "--replace", type=Replacements(), metavar="OLD:NEW,...", help="Give the replicas of one broker to another."
    ),
    click.option(
        "--reorder",
        is_flag=True,
        help="Change the order of replicas, to spread preferred leaders; alone, it copies nothing.",
    ),
    click.option("--disable-rack-aware", is_flag=True, help="Ignore the racks of brokers."),
    click.option(
        "--save-plan",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the plan that was made, in the format of kafka-reassign-partitions.sh.",
    ),
)


# Decorator of a command, which gets the options as ``making``.
making_options = option_group(_OPTIONS, MakingOptions, "making")


def read_topics(file: Path) -> list[str]:
    """Return the topics in a file for ``kafka-reassign-partitions.sh --topics-to-move-json-file``.

    Raises:
        HeadroomError: the file cannot be read, has another format, or names a topic twice, which Kafka's tool refuses
            too.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.parseTopicsData`` and ``parseGenerateAssignmentArgs``.
    """
    document = read_json(file, _FORMAT)
    entries = document.get("topics") if isinstance(document, dict) and document.get("version", 1) == 1 else None
    names = [entry.get("topic") if isinstance(entry, dict) else None for entry in entries or ()]
    if not isinstance(entries, list) or not all(isinstance(name, str) and name for name in names) or not names:
        raise HeadroomError(str(file), "is not a list of topics of version 1", _FORMAT)
    twice = [str(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise HeadroomError(str(file), f"names {', '.join(twice[:_SHOWN])} more than once", "Name each topic once.")
    return [str(name) for name in names]
