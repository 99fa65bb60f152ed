"""What caches of the page keep."""

from __future__ import annotations

from headroom.dashboard.data.kept import keep


def test_what_was_kept_first_is_dropped_and_what_is_kept_again_is_last() -> None:
    kept: dict[str, int] = {}
    for value, key in enumerate("abac"):
        keep(kept, key, value, 2)
    # a was kept again before c came.
    assert list(kept.items()) == [("a", 2), ("c", 3)]
    keep(kept, "d", 4, 1)
    assert kept == {"d": 4}
