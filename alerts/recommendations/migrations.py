"""Recommendations of alerts on migrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headroom.alerts.recommendations import commands
from headroom.alerts.recommendations.recommendation import Action, Advice
from headroom.alerts.recommendations.recommender import Recommender
from headroom.alerts.recommendations.throttle_commands import MOST_KAFKA_LINES
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.schemas.migrations import MigrationMethod, MigrationStatus
from headroom.schemas.text.amounts import join_names

# Most topics that one command names.
MOST_TOPICS = 50
# Option of a run for partitions whose logs do not get to their end offsets.
END_HERE = ("--end-here",)


def look_for_lost() -> Advice:
    """Return the action for acknowledged records that the origin's log does not have any more."""
    return Advice(
        Action.CHECK,
        "stop no broker of the origin: if the former leader still has the records on its disk, save its log directory "
        "before it truncates; if they can be produced again, do that on the target; "
        "headroom migration run --accept-loss then lets readers go on where the log ends",
    )


def move_producers() -> Advice:
    """Return the action for clients that write to the origin after the switch."""
    return Advice(
        Action.MOVE_PRODUCERS,
        "find the producers that do not use the routing library, or were not moved, and move them to the target; "
        "headroom migration verify counts their records that the target does not have; keep the origin until then",
    )


def put_on_plan(
    verdict: MigrationVerdict,
    off_plan: Sequence[MigrationProgress],
    every: Sequence[MigrationProgress],
    to: Recommender,
) -> Advice:
    """Return the action for partitions that switch early, late or never.

    Args:
        verdict: the worst of them.
        off_plan: these partitions.
        every: all partitions of the migration.
        to: makes the commands.
    """
    is_routed = all(partition.method == MigrationMethod.ROUTED for partition in every)
    if verdict is MigrationVerdict.LATE:
        nearer = "; if E is to be nearer: headroom migration run --end-here" if is_routed else ""
        return Advice(
            Action.CHECK,
            "wait, or compare what producers write now with the rate at which E was agreed: no record is lost" + nearer,
        )
    is_planned = all(partition.status == MigrationStatus.PLANNED for partition in off_plan)
    if not is_planned and not is_routed:
        return Advice(
            Action.CHECK, "let producers write until the origin is at E: it is the end of a log that was there"
        )
    if not is_planned:
        return Advice(
            Action.RUN_MIGRATION,
            "if producers write no more: run the command, which agrees a nearer E where the origin ends, with all "
            "routers; name those that still run by --router if others have ended; no record is lost",
            commands=_run_commands(every, to, END_HERE),
        )
    missing = sorted({router for partition in off_plan for router in partition.missing_routers})
    start = f"start the routers that have not agreed ({join_names(missing)}); " if missing else ""
    does, until = "agrees another E", ""
    if any(partition.reopened_end is not None for partition in off_plan):
        does, until = "puts the nearer E in force, or the one before", " until then, and readers wait"
    return Advice(
        Action.RUN_MIGRATION,
        f"{start}run the command, which {does}; no record is lost: what lands from E on is held{until}",
        commands=_run_commands(every, to),
    )


def raise_retention(enough_ms: Mapping[str, int], recommender: Recommender) -> Advice:
    """Return the commands that keep records on the origin until readers have them.

    Args:
        enough_ms: retention that is enough, milliseconds by topic.
        recommender: knows the origin.
    """
    if not enough_ms or len(enough_ms) > MOST_KAFKA_LINES:
        return Advice(
            Action.RAISE_RETENTION,
            "raise retention.ms of the origin's topics, and retention.bytes if it is set, or add consumers: "
            "a group that does not read needs both",
        )
    return Advice(
        Action.RAISE_RETENTION,
        "raise retention.ms on the origin, or add consumers to the group; retention.bytes, if set, still deletes",
        commands=[
            commands.kafka_topic_setting(topic, "retention.ms", str(enough), recommender.origin_servers)
            for topic, enough in enough_ms.items()
        ],
    )


def secure_writes(
    unclean: Sequence[str], *, has_weak_acks: bool, few_in_sync: Sequence[str], recommender: Recommender
) -> Advice:
    """Return what makes acknowledged records safe from leader switches on the origin.

    Args:
        unclean: topics that allow unclean elections.
        has_weak_acks: whether a router produces with acks below all.
        few_in_sync: topics whose min.insync.replicas is below 2.
        recommender: knows the origin.
    """
    # min.insync.replicas in words: with two replicas, 2 stops producers as soon as one broker is down.
    parts = [
        "let producers use acks=all" if has_weak_acks else "",
        f"set min.insync.replicas to 2 where there are three replicas ({join_names(few_in_sync)})"
        if few_in_sync
        else "",
        f"forbid unclean elections ({join_names(unclean)})" if unclean else "",
    ]
    kafka = [
        commands.kafka_topic_setting(topic, "unclean.leader.election.enable", "false", recommender.origin_servers)
        for topic in unclean
    ]
    return Advice(
        Action.SECURE_WRITES,
        f"{', '.join(filter(None, parts))}; until then, cause no leader switch on the origin",
        commands=kafka if len(kafka) <= MOST_KAFKA_LINES else (),
    )


def speed_up_mirror(*, is_overtaken: bool) -> Advice:
    """Return the action for a mirror that is behind.

    Args:
        is_overtaken: whether retention deletes records before it has them.
    """
    first = "raise retention.ms of the origin's topics at once; then " if is_overtaken else ""
    return Advice(
        Action.CHECK,
        f"{first}look whether the mirror's connector runs, and give it more tasks (tasks.max) or a higher quota",
    )


def drop_origin(every: Sequence[MigrationProgress], recommender: Recommender) -> Advice:
    """Return the command that deletes the origin's topics, which cannot be undone.

    Args:
        every: all partitions of the migration.
        recommender: makes the commands.
    """
    return Advice(
        Action.DROP_ORIGIN,
        "when nobody needs the origin's topics for anything else: the command deletes them for good",
        commands=_run_commands(every, recommender, ("--until", "aged", "--drop")),
    )


def _run_commands(
    every: Sequence[MigrationProgress], recommender: Recommender, options: Sequence[str] = ()
) -> list[str]:
    """Return the command that continues a migration; none if it has too many topics, or several methods."""
    topics, methods = sorted({p.topic for p in every}), {p.method for p in every}
    if len(topics) > MOST_TOPICS or len(methods) != 1:
        return []
    return [commands.headroom_migration_run(topics, every[0].migration, methods.pop(), options, recommender.config)]
