"""True and false alerts, detected and missed faults: precision and recall of each tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.groups.precision.faults import ANY
from benchmarks.results import Figure, percentile
from headroom.schemas.alerts import Severity

HEADROOM = "headroom"
# An alert may begin this long after the fault was reverted and still be about it, because rules lag behind.
GRACE_S = 30.0
# Alertmanager's default group_wait: alerts of one rule within this time are one notification.
_GROUP_WAIT_S = 30.0


@dataclass(frozen=True)
class AlertPage:
    """One alert of one tool; it counts when it begins.

    Attributes:
        tool: name of the tool.
        name: kind of alert, or name of the rule.
        subject: subject of the alert, or its labels.
        severity: severity of the tool.
        at_s: beginning, epoch seconds.
        until_s: end, epoch seconds; None if it was still firing.
    """

    tool: str
    name: str
    subject: str
    severity: str
    at_s: float
    until_s: float | None = None


@dataclass(frozen=True)
class Window:
    """Time and expectations of one fault.

    Attributes:
        fault: name of the fault.
        expects: kinds of Headroom's alerts of which one has to fire, with their subject or ``ANY``.
        also: further kinds that are true.
        of_cluster: whether Kafka's metrics can show the fault.
        from_s: time of its injection, epoch seconds.
        right_s: time at which it was reverted, epoch seconds.
    """

    fault: str
    expects: Mapping[str, str]
    also: frozenset[str]
    of_cluster: bool
    from_s: float
    right_s: float

    def contains(self, page: AlertPage) -> bool:
        """Return whether an alert began during the fault or shortly after."""
        return self.from_s <= page.at_s <= self.right_s + GRACE_S

    def may_explain(self, page: AlertPage) -> bool:
        """Return whether the fault can explain an alert. It explains any stock rule, because those name no broker."""
        return page.tool != HEADROOM or page.name in self.expects or page.name in self.also

    def is_detected_by(self, page: AlertPage) -> bool:
        """Return whether an alert detects the fault."""
        if not self.contains(page):
            return False
        return page.tool != HEADROOM or self.expects.get(page.name) in (ANY, page.subject)

    def concerns(self, tool: str) -> bool:
        """Return whether a tool can detect the fault."""
        return self.of_cluster or tool == HEADROOM


def grouped(pages: Iterable[AlertPage]) -> list[AlertPage]:
    """Return alerts with those of one stock rule that begin together merged, from the beginning of the first.

    Args:
        pages: alerts ordered by their beginning.
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
    """Return whether an alert pages. Headroom's infos do not; alerts of stock rules always do."""
    return page.tool != HEADROOM or page.severity != Severity.INFO.value


def is_true(page: AlertPage, windows: Sequence[Window]) -> bool:
    """Return whether an alert is about a fault."""
    return any(window.contains(page) and window.may_explain(page) for window in windows)


def first_detection(tool: str, window: Window, pages: Sequence[AlertPage]) -> AlertPage | None:
    """Return the first alert by which a tool detected a fault; None if it missed it."""
    detections = [page for page in pages if page.tool == tool and window.is_detected_by(page)]
    return min(detections, key=lambda page: page.at_s, default=None)


def figures(tool: str, prefix: str, windows: Sequence[Window], pages: Sequence[AlertPage]) -> list[Figure]:
    """Return precision, recall and median delay of one tool; no delay if it detected nothing.

    Args:
        tool: name of the tool.
        prefix: prefix of the names of the figures.
        windows: faults.
        pages: alerts of all tools.
    """
    calls = [page for page in pages if page.tool == tool and is_page(page)]
    true = [page for page in calls if is_true(page, windows)]
    own = [window for window in windows if window.concerns(tool)]
    detected = {window.from_s: page for window in own if (page := first_detection(tool, window, pages))}
    # Without alerts none is false.
    precision = len(true) / len(calls) if calls else 1.0
    measured = [Figure(f"{prefix}_precision", precision, "ratio", len(calls))]
    if own:
        measured.append(Figure(f"{prefix}_recall", len(detected) / len(own), "ratio", len(own)))
    if detected:
        delays_s = [page.at_s - from_s for from_s, page in detected.items()]
        measured.append(Figure(f"{prefix}_delay_s_median", percentile(delays_s, 0.5), "s", len(delays_s)))
    return measured
