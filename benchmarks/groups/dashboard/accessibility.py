"""Every page that there is, and what axe finds on one that is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headroom.dashboard.acting.forms import FormName
from headroom.dashboard.address import View

# Findings that break a page for somebody.
_GRAVE = ("serious", "critical")


def paths(at_ms: int, broker: int, run_id: str) -> Iterator[str]:
    """Yield the address of every view, of what a click on it opens, of moments, and of messages.

    Args:
        at_ms: a moment of the tables, epoch milliseconds.
        broker: a broker with a throttle.
        run_id: a run of the journal.
    """
    for view in View:
        yield f"/{view.value}"
        yield f"/{view.value}?at={at_ms}&until={at_ms + 60_000}"
    for query in (f"broker={broker}", f"broker={broker}&role=follower", "rate=11+MB"):
        yield f"/throttles?{query}"
    yield f"/runs?run={run_id}"
    yield f"/moves?at={at_ms}&play=1"
    yield from ("/moves?page=0", "/nosuch")


def form_paths() -> Iterator[str]:
    """Yield the address of every form; they are there if the page carries out commands."""
    for name in FormName:
        yield f"/new/{name.value}"


def grave_findings(page: Any) -> list[str]:
    """Return the serious and critical findings of axe on the page that is open, each with its first element.

    Args:
        page: playwright's page.
    """
    # Only here: other groups need no browser.
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in _GRAVE]
