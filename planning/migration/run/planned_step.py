"""Next step of a planned partition: wait for routers and producers, agree again, or start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headroom.planning.migration.agreed_end import end_offset
from headroom.planning.migration.agreement import NextStep, readiness
from headroom.planning.migration.readings import growth_per_s
from headroom.planning.migration.run.seen import OriginReading, RunStep, RunTerms, SeenPartition
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement
from headroom.schemas.text.amounts import join_names

NO_ANSWER = "the origin to answer"
LEADER_END = "the end of the origin's log on its leader"


def planned_step(
    agreement: PartitionAgreement, seen: SeenPartition, agreed: Mapping[str, int], terms: RunTerms, number: int
) -> RunStep:
    """Return the next step of a planned partition.

    Args:
        agreement: what was agreed about it.
        seen: both clusters; the origin was read after the routers' reports.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    if agreement.ignore_origin:
        return _start_of_ignored(agreement, seen, agreed)
    if not seen.is_origin_up:
        is_ignored = terms.ignore_origin and seen.is_origin_down
        return _ignore_origin(agreement, seen, number) if is_ignored else RunStep(waits_for=NO_ANSWER)
    if agreement.method == MigrationMethod.ROUTED:
        return routed_step(agreement, seen, agreed, terms, number)
    return _moved_by_hand(agreement, seen, number)


def routed_step(
    agreement: PartitionAgreement, seen: SeenPartition, agreed: Mapping[str, int], terms: RunTerms, number: int
) -> RunStep:
    """Return the next step of a planned partition whose clients use the routing library, and whose origin answers.

    Args:
        agreement: what was agreed about it.
        seen: both clusters; the origin was read after the routers' reports.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    ready = readiness(agreement, agreed, seen.leader_end, seen.offsets_per_s)
    other_routers = bool(terms.routers) and set(terms.routers) != set(agreement.routers)
    if ready.step is NextStep.AGREE_AGAIN or other_routers:
        again = agreed_again(agreement, _steady(agreement, reading_of(seen)), terms, number)
        return RunStep(again) if again is not None else RunStep(waits_for="a write rate, to agree again")
    if ready.step is NextStep.WAIT:
        return RunStep(waits_for=_routers_text(ready.missing))
    return _start(agreement, seen)


def agreed_again(
    agreement: PartitionAgreement, reading: OriginReading | None, terms: RunTerms, number: int
) -> PartitionAgreement | None:
    """Return an agreement with the end offset that the log reaches in the time of a preparation; None if unknown.

    Args:
        agreement: what was agreed before.
        reading: reading of the origin; None if there is none.
        terms: what the run is asked for.
        number: number of the new agreement.
    """
    end = None if reading is None else end_offset(reading.end, reading.offsets_per_s, terms.prepare_s)
    if end is None:
        return None
    routers = terms.routers or agreement.routers
    return replace(agreement, end_offset=end, number=number, routers=routers, **_terms_of(reading))


def _steady(agreement: PartitionAgreement, now: OriginReading | None) -> OriginReading | None:
    """Return a reading whose rate is not that of a burst: once an end is moved on, all that routers held comes at once.

    Since the last agreement the log has grown as it was written. If it grows less now, that counts.
    """
    before = reading_in(agreement)
    if now is None or before is None or now.offsets_per_s is None:
        return now
    since = growth_per_s(before.end, now.end, (now.read_ms - before.read_ms) / 1000)
    return now if since is None else replace(now, offsets_per_s=min(now.offsets_per_s, since))


def _moved_by_hand(agreement: PartitionAgreement, seen: SeenPartition, number: int) -> RunStep:
    """Start once producers have left the origin: its log end is the end offset."""
    end, stable, target_end = seen.log.end, seen.log.stable, seen.target.end
    if end is None or stable is None or target_end is None:
        return RunStep(waits_for="the log ends of both clusters")
    if seen.leader_end is None:
        return RunStep(waits_for=LEADER_END)
    is_linked = agreement.method == MigrationMethod.LINKED
    if is_linked and target_end > end:
        rule = f"has diverged: the target ends at {target_end:,}, beyond the origin's {end:,}"
        remedy = "See who writes to the target, or whether the origin was recreated."
        return RunStep(refusal=HeadroomError(str(agreement.name), rule, remedy))
    if not seen.is_topic_quiet:
        return RunStep(waits_for="producers to leave the origin")
    if stable < end:
        return RunStep(waits_for=f"the end of a transaction at offset {stable:,}")
    if is_linked and target_end < end:
        return RunStep(waits_for=f"the link to copy {end - target_end:,} offsets")
    if agreement.method == MigrationMethod.MIRRORED and not seen.is_mirrored:
        return RunStep(waits_for=seen.unread_mirror or "the mirror to end with the origin's last record")
    planned = replace(agreement, end_offset=end, **_terms_of(reading_of(seen)))
    if agreement.end_offset not in (None, end):
        return RunStep(replace(planned, number=number))
    return _start(planned, seen)


def _start(agreement: PartitionAgreement, seen: SeenPartition) -> RunStep:
    base = _base(agreement, seen)
    if base is None:
        return RunStep(waits_for="the log end of the target")
    return RunStep(replace(agreement, status=MigrationStatus.MIGRATING.value, target_base_offset=base))


def _base(agreement: PartitionAgreement, seen: SeenPartition) -> int | None:
    """Return the target's first offset in the migration; None if unknown."""
    # Producers that are drained may have begun on the target, which was empty when it was agreed about.
    if agreement.target_base_offset is not None:
        return agreement.target_base_offset
    # A link keeps offsets, so that client offsets are those of the target.
    return agreement.end_offset if agreement.method == MigrationMethod.LINKED else seen.target.end


def _ignore_origin(agreement: PartitionAgreement, seen: SeenPartition, number: int) -> RunStep:
    """Agree that the origin is ignored, with an end offset that it has not passed by its last known rate."""
    reading = _with_rate(seen.last, reading_in(agreement))
    if agreement.method == MigrationMethod.LINKED:
        # Offsets are the same on both: the link's last one is all that there will be.
        end = seen.target.end
    else:
        end = None if reading is None else _end_by_now(reading, seen.now_ms)
    if end is None:
        rule = "cannot ignore its origin: the last log end or write rate of it is unknown"
        remedy = "Wait until the origin answers, or withdraw the partition: headroom migration cancel."
        return RunStep(refusal=HeadroomError(str(agreement.name), rule, remedy))
    return RunStep(replace(agreement, end_offset=end, number=number, ignore_origin=True, **_terms_of(reading)))


def _with_rate(last: OriginReading | None, agreed: OriginReading | None) -> OriginReading | None:
    """Return the last reading, with the rate of the agreement if it has none, as the first one of a run."""
    if last is None or last.offsets_per_s is not None or agreed is None:
        return last or agreed
    return replace(last, offsets_per_s=agreed.offsets_per_s)


def _end_by_now(reading: OriginReading, now_ms: int) -> int | None:
    return end_offset(reading.end, reading.offsets_per_s, max(0, now_ms - reading.read_ms) / 1000)


def _start_of_ignored(agreement: PartitionAgreement, seen: SeenPartition, agreed: Mapping[str, int]) -> RunStep:
    # Its end offset is for good, wherever the log of an origin that is back ends.
    ready = readiness(agreement, agreed, agreement.end_offset)
    if ready.missing:
        return RunStep(waits_for=_routers_text(ready.missing))
    return _start(agreement, seen)


def reading_of(seen: SeenPartition) -> OriginReading | None:
    """Return the present reading of the origin; None if it is down."""
    if seen.log.end is None:
        return None
    end = seen.log.end if seen.leader_end is None else seen.leader_end
    return OriginReading(end, seen.offsets_per_s, seen.now_ms)


def reading_in(agreement: PartitionAgreement) -> OriginReading | None:
    """Return the reading of the origin that an agreement has; None without one."""
    end, read_ms = agreement.origin_position, agreement.origin_read_ms
    if end is None or read_ms is None:
        return None
    return OriginReading(end, agreement.origin_offsets_per_s, read_ms)


def _terms_of(reading: OriginReading | None) -> dict[str, Any]:
    if reading is None:
        return {}
    return {
        "origin_position": reading.end,
        "origin_offsets_per_s": reading.offsets_per_s,
        "origin_read_ms": reading.read_ms,
    }


def _routers_text(missing: tuple[str, ...]) -> str:
    return f"routers to agree: {join_names(missing)}" if missing else LEADER_END
