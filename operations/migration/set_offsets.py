"""Offsets of a consumer group on the target: written to a file for Kafka's tool, or committed."""

from __future__ import annotations

import re
from pathlib import Path

from headroom.operations.files import write_own
from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.migration.clusters import MigrationClusters
from headroom.operations.migration.translation import TranslationResult
from headroom.operations.progress import OnText
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import join_names

_LINE = re.compile(rb"(?:[A-Za-z0-9._-]+,[0-9]+,[0-9]+\n)*")


def offsets_csv(result: TranslationResult) -> str:
    """Return the offsets for ``kafka-consumer-groups --reset-offsets --from-file`` of one group.

    Source: Kafka 4.0, ``GroupOffsetsResetter.parseResetPlan``: a line of topic, partition and offset each, no header.
    """
    return "".join(f"{topic},{partition},{offset}\n" for (topic, partition), offset in sorted(result.known().items()))


def write_offsets(file: Path, result: TranslationResult) -> None:
    """Write the offsets to a file for Kafka's tool; an existing one is replaced if it is such a file.

    Raises:
        HeadroomError: a partition has no offset, another kind of file exists there, or it cannot be written.
    """
    require_all(result)
    write_own(file, offsets_csv(result), lambda content: _LINE.fullmatch(content) is not None, "a file of offsets")


def require_all(result: TranslationResult) -> None:
    """Check that every partition has an offset: a consumer would begin the others by its auto.offset.reset.

    Raises:
        HeadroomError: partitions have none; names the first with the reason.
    """
    unknown = result.unknown()
    if unknown:
        subject = join_names([str(offset.name) for offset in unknown])
        rule = f"no offset on the target ({unknown[0].reason})"
        remedy = "None was written or set, because consumers would begin there by auto.offset.reset."
        raise HeadroomError(subject, rule, remedy)


def commit_translated(
    settings: Settings, clusters: MigrationClusters, result: TranslationResult, on_note: OnText
) -> None:
    """Commit the offsets in the place of the group on the target, with a row in the journal for each.

    Args:
        settings: all settings.
        clusters: the two clusters.
        result: the offsets.
        on_note: gets a sentence if the change is not in the journal.

    Raises:
        HeadroomError: the group has members there, a partition has no offset, or an offset was not committed.
    """
    require_all(result)
    group = result.request.group
    subject = f"group {group} on {clusters.target.subject}"
    if clusters.target.groups().get(group, False) is not False:
        rule = "has consumers, or may have: they would overwrite the offsets, and not read from there"
        raise HeadroomError(subject, rule, "Stop them, then run the command again.")
    offsets = result.known()
    steps = [
        JournalStep(
            StepKind.OFFSET,
            StepState.INTENDED,
            f"group {group} at {one.target_name}",
            None if one.now is None else str(one.now),
            str(one.target_offset),
        )
        for one in result.offsets
    ]
    make_journalled_change(
        settings, "migration offsets", steps, lambda: clusters.target.commit(group, offsets), on_note
    )
    committed = clusters.target.committed([group], list(offsets))[group]
    if committed != offsets:
        different = sorted(name for name in offsets if committed.get(name) != offsets[name])
        rule = f"was committed, but reads back otherwise at {', '.join(map(str, different))}: another client writes it"
        raise HeadroomError(subject, rule, "Stop its consumers, then run the command again.")
