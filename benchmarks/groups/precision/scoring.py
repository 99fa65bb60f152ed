"""Right or false, seen or missed: what each tool's pages are worth, given what really happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.groups.precision.faults import ANY
from benchmarks.results import Figure, percentile
from schemas.alerts import Severity

HEADROOM = "headroom"
# A page may come so long after a fault was put right and still be about it: rules see things later than they are.
GRACE_S = 30.0
# Alerts of one rule that begin so soon after each other are one call: Alertmanager waits so long by default.
_GROUP_WAIT_S = 30.0


@dataclass(frozen=True)
class AlertPage:
    """One alert of one tool; only its beginning calls anybody.

    Attributes:
        tool: whose.
        name: kind of alert, or name of the rule.
        subject: what it is about, besides.
        severity: as the tool has it.
        at_s: when it began to fire, epoch seconds.
        until_s: when it ended; None: it had not.
    """

    tool: str
    name: str
    subject: str
    severity: str
    at_s: float
    until_s: float | None = None


@dataclass(frozen=True)
class Window:
    """One fault as it happened.

    Attributes:
        fault: what went wrong.
        expects: kinds of Headroom's alerts of which one has to fire, each with its subject, which may be any.
        also: kinds that are true as well.
        of_cluster: whether Kafka's metrics could tell of it.
        from_s: when it was injected, epoch seconds.
        right_s: when it had been put right.
    """

    fault: str
    expects: Mapping[str, str]
    also: frozenset[str]
    of_cluster: bool
    from_s: float
    right_s: float

    def contains(self, page: AlertPage) -> bool:
        """Return whether a page came while it lasted or soon after."""
        return self.from_s <= page.at_s <= self.right_s + GRACE_S

    def may_explain(self, page: AlertPage) -> bool:
        """Return whether a page may be about it: of a stock rule any, for none names what it is about."""
        return page.tool != HEADROOM or page.name in self.expects or page.name in self.also

    def is_detected_by(self, page: AlertPage) -> bool:
        """Return whether a page tells of it."""
        if not self.contains(page):
            return False
        return page.tool != HEADROOM or self.expects.get(page.name) in (ANY, page.subject)

    def concerns(self, tool: str) -> bool:
        """Return whether a tool could have seen it."""
        return self.of_cluster or tool == HEADROOM


def grouped(pages: Iterable[AlertPage]) -> list[AlertPage]:
    """Return the pages of stock rules with those of one rule that begin together as one, from when the first began.

    Args:
        pages: in the order in which they began.
    """
    calls: list[AlertPage] = []
    for page in pages:
        same = (n for n in range(len(calls) - 1, -1, -1) if (calls[n].tool, calls[n].name) == (page.tool, page.name))
        last = next(same, None)
        if last is not None and page.at_s - calls[last].at_s <= _GROUP_WAIT_S:
            until_s = max(page.until_s or page.at_s, calls[last].until_s or page.at_s)
            calls[last] = replace(calls[last], subject=f"{calls[last].subject}; {page.subject}", until_s=until_s)
        else:
            calls.append(page)
    return calls


def is_page(page: AlertPage) -> bool:
    """Return whether a page calls somebody: Headroom's information does not, whatever a stock rule says does."""
    return page.tool != HEADROOM or page.severity != Severity.INFO.value


def is_true(page: AlertPage, windows: Sequence[Window]) -> bool:
    """Return whether a page is about a fault."""
    return any(window.contains(page) and window.may_explain(page) for window in windows)


def first_detection(tool: str, window: Window, pages: Sequence[AlertPage]) -> AlertPage | None:
    """Return the page by which a tool told of a fault; None: it missed it."""
    detections = [page for page in pages if page.tool == tool and window.is_detected_by(page)]
    return min(detections, key=lambda page: page.at_s, default=None)


def figures(tool: str, prefix: str, windows: Sequence[Window], pages: Sequence[AlertPage]) -> list[Figure]:
    """Return precision, recall and median delay of one tool; no delay if it saw nothing.

    Args:
        tool: which.
        prefix: of the figures' names.
        windows: the faults.
        pages: of all tools.
    """
    calls = [page for page in pages if page.tool == tool and is_page(page)]
    true = [page for page in calls if is_true(page, windows)]
    own = [window for window in windows if window.concerns(tool)]
    detected = {window.from_s: page for window in own if (page := first_detection(tool, window, pages))}
    # Of no page none was false.
    precision = len(true) / len(calls) if calls else 1.0
    found = [Figure(f"{prefix}_precision", precision, "ratio", len(calls))]
    if own:
        found.append(Figure(f"{prefix}_recall", len(detected) / len(own), "ratio", len(own)))
    if detected:
        delays_s = [page.at_s - from_s for from_s, page in detected.items()]
        found.append(Figure(f"{prefix}_delay_s_median", percentile(delays_s, 0.5), "s", len(delays_s)))
    return found
