"""Part ``cases``: offsets of random mirrors, beside a model of Kafka's translation and where records really are."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.results import Figure
from headroom.planning.migration import translate
from tests.unit.planning.migration.kafka_sync_store import KafkaSyncStore
from tests.unit.planning.migration.mirror import ANY, KEEPS_TARGET, Mirror

_SEED = 41
_MOST_STEPS, _MOST_AMOUNT = 20, 80
_MAX_LAGS = (0, 1, 5, 20, 100)
_OFFSETS_OF_A_MIRROR = 20


def case_figures(cases: int, on_progress: OnProgress) -> list[Figure]:
    """Return how many of so many random cases are behind Kafka's answer, and how many skip a record."""
    chance, behind, past = Random(_SEED), 0, 0
    for number in range(0, cases, _OFFSETS_OF_A_MIRROR):
        # Kafka's answers after a rewind of the target skip records, so ours may be behind them.
        keeps_target = number // _OFFSETS_OF_A_MIRROR % 2 == 0
        mirror = random_mirror(chance, KEEPS_TARGET if keeps_target else ANY)
        offsets = [chance.randint(0, mirror.origin + 1) for _ in range(min(_OFFSETS_OF_A_MIRROR, cases - number))]
        past += past_record(mirror, offsets)
        behind += behind_kafka(mirror, offsets) if keeps_target else 0
    on_progress(f"{cases:,} offsets of random mirrors: {behind} behind Kafka's answer, {past} past a record")
    return [
        Figure("translate_behind_kafka", behind, "offsets", cases),
        Figure("translate_past_record", past, "offsets", cases),
    ]


def random_mirror(chance: Random, kinds: tuple[str, ...]) -> Mirror:
    """Return a mirror after random steps of these kinds."""
    mirror = Mirror(max_lag=chance.choice(_MAX_LAGS))
    for _ in range(chance.randint(1, _MOST_STEPS)):
        getattr(mirror, chance.choice(kinds))(chance.randint(1, _MOST_AMOUNT))
    return mirror


def behind_kafka(mirror: Mirror, offsets: list[int]) -> int:
    """Return at how many offsets Kafka has an answer, and ours is none or an earlier one."""
    store = KafkaSyncStore()
    for sync in mirror.syncs:
        store.add(*sync)
    answers = ((translate(mirror.syncs, offset), store.translate(offset)) for offset in offsets)
    return sum(kafkas is not None and kafkas >= 0 and (ours is None or ours < kafkas) for ours, kafkas in answers)


def past_record(mirror: Mirror, offsets: list[int]) -> int:
    """Return at how many offsets a reader that continues at our answer skips a record."""
    last_copies = {origin: target for target, origin in sorted(mirror.copies.items()) if origin < mirror.origin}
    origins = sorted(last_copies)
    # The least last copy of any record from each one on; behind the last one, all records are still to come.
    least = [mirror.end] * (len(origins) + 1)
    for number in reversed(range(len(origins))):
        least[number] = min(least[number + 1], last_copies[origins[number]])
    answers = ((translate(mirror.syncs, offset), least[bisect_left(origins, offset)]) for offset in offsets)
    return sum(ours is not None and ours > place for ours, place in answers)
