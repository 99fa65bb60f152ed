"""Comparison of a partition with its mirror, record by record, in bounded memory."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice

from headroom.planning.migration.mirrors.record_digest import RecordDigest

# Records that are kept of each of three kinds; at most some 130 MB in all.
WINDOW = 100_000
_MOST_STRANGERS, _NEAR = 1_000, 100


@dataclass(frozen=True)
class MirrorCounts:
    """Records of a partition by what the mirror has of them.

    Attributes:
        mirrored: records of the origin with a copy, which is the same in key, value, headers and timestamp.
        missing: records of the origin without a copy, although a later one has one.
        pending: records of the origin after the last one with a copy: not mirrored yet.
        doubled: copies of records that had one already.
        differing: records at their place on the target, with the key and timestamp but another value or other headers.
        out_of_order: copies, counted in ``mirrored``, that are behind the copy of a later record.
        foreign: records of the target that the origin does not have.
        older: records of the target before the first copy, which the origin has deleted.
        deleted: records of the origin before the first copy, which the target has deleted.
    """

    mirrored: int = 0
    missing: int = 0
    pending: int = 0
    doubled: int = 0
    differing: int = 0
    out_of_order: int = 0
    foreign: int = 0
    older: int = 0
    deleted: int = 0

    def is_whole(self) -> bool:
        """Return whether every record has one copy, in order; those that are pending do not count."""
        return not (self.missing or self.doubled or self.differing or self.out_of_order or self.foreign)

    def __add__(self, other: MirrorCounts) -> MirrorCounts:
        """Return the counts of two partitions together."""
        return MirrorCounts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(MirrorCounts)})


def compare_mirror(
    origin: Iterable[RecordDigest],
    target: Iterable[RecordDigest],
    *,
    origin_deletes: bool = False,
    target_deletes: bool = False,
    window: int = WINDOW,
) -> MirrorCounts:
    """Return what a mirror has of the records of a partition.

    Of the records that are not at their place, a number is kept: records of the origin that were passed over, those
    that are ahead of the mirror, and those that had a copy last. A copy that is farther away counts as foreign, and its
    record as missing; a doubled one as foreign. Records that are the same in all parts are told apart by their order
    alone, so that beside other faults they may be counted as another one.

    Args:
        origin: records of the origin, in order.
        target: records of the target, in order, that were read before those of the origin ended.
        origin_deletes: whether the origin has deleted records that the target may have.
        target_deletes: whether the target has deleted records that the origin may have.
        window: records that are kept of each kind.
    """
    comparison = _Comparison(iter(origin), window)
    for record in target:
        comparison.add(record)
    return comparison.counts(origin_deletes, target_deletes)


class _Comparison:
    """Matches records of the target, one by one, with those of the origin."""

    def __init__(self, origin: Iterator[RecordDigest], window: int) -> None:
        self._origin = origin
        self._window = window
        # Records of the origin that were read, behind the last match in its order; and how many of them are the same.
        self._ahead: deque[RecordDigest] = deque()
        self._ahead_counts: Counter[RecordDigest] = Counter()
        # Records before it without a copy, and the last ones with a copy.
        self._passed: OrderedDict[RecordDigest, int] = OrderedDict()
        self._copied: OrderedDict[RecordDigest, None] = OrderedDict()
        # Records of the target since the last match that the origin does not have.
        self._strangers: deque[RecordDigest] = deque()
        self._mirrored = self._lost = self._doubled = self._differing = self._out_of_order = self._foreign = 0
        # Before the first match.
        self._older = self._deleted = 0

    def add(self, record: RecordDigest) -> None:
        self._read_ahead(1)
        if self._ahead and self._ahead[0] == record:
            self._match_ahead(0)
        elif record in self._passed:
            self._passed[record] -= 1
            if not self._passed[record]:
                del self._passed[record]
            self._out_of_order += 1
            self._match(record)
        elif record in self._copied:
            self._doubled += 1
        else:
            self._read_ahead(self._window)
            if record in self._ahead_counts:
                self._match_ahead(self._ahead.index(record))
            else:
                self._add_stranger(record)

    def counts(self, origin_deletes: bool, target_deletes: bool) -> MirrorCounts:
        self._settle(len(self._strangers))
        unmatched = self._lost + sum(self._passed.values())
        has_begun = self._mirrored > 0
        older = min(self._older, self._foreign) if origin_deletes and has_begun else 0
        deleted = min(self._deleted, unmatched) if target_deletes else 0
        return MirrorCounts(
            mirrored=self._mirrored,
            missing=unmatched - deleted,
            pending=len(self._ahead) + sum(1 for _ in self._origin),
            doubled=self._doubled,
            differing=self._differing,
            out_of_order=self._out_of_order,
            foreign=self._foreign - older,
            older=older,
            deleted=deleted,
        )

    def _match_ahead(self, index: int) -> None:
        """Match a record ahead; those before it are passed over, or have been changed."""
        if not self._mirrored:
            self._deleted = index
        for _ in range(index):
            passed = self._take_ahead()
            near = enumerate(islice(self._strangers, _NEAR))
            changed = next((at for at, stranger in near if _is_changed(passed, stranger)), None)
            if changed is None:
                self._pass_over(passed)
                continue
            for _ in range(changed):
                self._strangers.popleft()
            self._take_changed()
        self._strangers.clear()
        self._match(self._take_ahead())

    def _add_stranger(self, record: RecordDigest) -> None:
        self._foreign += 1
        self._older += not self._mirrored
        self._strangers.append(record)
        if len(self._strangers) > _MOST_STRANGERS:
            self._settle(len(self._strangers) // 2)

    def _settle(self, number: int) -> None:
        """Decide which of the first strangers are changed records of the origin: those that come next there."""
        for _ in range(number):
            if self._ahead and _is_changed(self._ahead[0], self._strangers[0]):
                self._take_ahead()
                self._take_changed()
            else:
                self._strangers.popleft()

    def _take_changed(self) -> None:
        self._strangers.popleft()
        self._foreign -= 1
        self._differing += 1

    def _read_ahead(self, records: int) -> None:
        new = list(islice(self._origin, max(0, records - len(self._ahead))))
        self._ahead.extend(new)
        self._ahead_counts.update(new)

    def _take_ahead(self) -> RecordDigest:
        record = self._ahead.popleft()
        self._ahead_counts[record] -= 1
        if not self._ahead_counts[record]:
            del self._ahead_counts[record]
        return record

    def _match(self, record: RecordDigest) -> None:
        self._mirrored += 1
        self._copied[record] = None
        self._copied.move_to_end(record)
        if len(self._copied) > self._window:
            self._copied.popitem(last=False)

    def _pass_over(self, record: RecordDigest) -> None:
        self._passed[record] = self._passed.get(record, 0) + 1
        if len(self._passed) > self._window:
            _, number = self._passed.popitem(last=False)
            self._lost += number


def _is_changed(expected: RecordDigest, actual: RecordDigest) -> bool:
    """Return whether a record is another one with its value or its headers changed."""
    return expected.key == actual.key and expected.timestamp_ms == actual.timestamp_ms
