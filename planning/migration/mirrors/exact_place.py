"""Place of a reader on a mirror, by the records themselves instead of syncs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headroom.planning.migration.mirrors.record_digest import RecordDigest

# Records after the next one that have to follow it on the target too. They tell apart records that are the same.
FOLLOWING = 4


class ExactPlace(NamedTuple):
    """Where a reader continues on the target.

    Attributes:
        offset: offset on the target.
        is_next: whether the reader's next record is there; False: the record before it is the one before this offset.
    """

    offset: int
    is_next: bool


def exact_place(
    before: RecordDigest | None,
    following: Sequence[RecordDigest],
    target: Iterable[tuple[int, RecordDigest]],
) -> ExactPlace | None:
    """Return the offset at which a reader of the origin continues on the target.

    That is the first copy of its next record that the following ones follow, as far as the target has them. If the
    target has no copy of the next record, or the reader has read all, it is behind the first copy of the record before
    it. An earlier copy may be read again, while a later one may skip records. So nothing is returned if the first copy
    is followed by others, and no later one by the right ones.

    Args:
        before: the record before the reader's offset on the origin; None without one.
        following: the records from its offset on, at most ``1 + FOLLOWING``; empty if it has read all.
        target: offsets and records of the target in order, from a place at or before both copies on.

    Returns:
        None if the place is not known.
    """
    window: deque[tuple[int, RecordDigest]] = deque(maxlen=max(1, len(following)))
    after_before = first_copy = None
    for offset, record in target:
        if after_before is None and record == before:
            after_before = offset + 1
        if first_copy is None and following and record == following[0]:
            first_copy = offset
        window.append((offset, record))
        if following and [record for _, record in window] == list(following):
            return ExactPlace(window[0][0], True)
    if first_copy is None:
        return None if after_before is None else ExactPlace(after_before, False)
    rest = [record for offset, record in window if offset >= first_copy]
    is_at_end = window[0][0] <= first_copy and rest == list(following[: len(rest)])
    return ExactPlace(first_copy, True) if is_at_end else None
