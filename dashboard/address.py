"""What the address of a page says: view, cluster, moment, range, filters and order."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, field_validator

from headroom.dashboard.views.blocks import Paging
from headroom.schemas.keys import Role
from headroom.schemas.quantities import parse_bytes_per_s

# Ticks before 2001 or after 2200 are none.
FIRST_MS, LAST_MS = 10**12, 7_258_118_400_000
MOST_ROWS, MOST_TIMES = 5000, 600
# A browser takes half a second to lay out 2,000 rows, each time that some of them have changed.
_MOST_SHOWN = 200
_NAME = Field(min_length=1, max_length=300)


class View(str, Enum):
    """A view of the page, by its path."""

    MOVES = "moves"
    THROTTLES = "throttles"
    LEADERS = "leaders"
    LAG = "lag"
    MIGRATION = "migration"
    ALERTS = "alerts"
    TIMELINE = "timeline"
    RUNS = "runs"
    HEALTH = "health"

    @property
    def heading(self) -> str:
        """Return its heading."""
        return self.value.capitalize()


class Address(BaseModel):
    """The query of an address; each key is one of the page's, and each value is in its bounds.

    Attributes:
        cluster: name of the cluster; None: the first one.
        at: moment that is looked at, epoch milliseconds; None: now.
        until: end of the range of moments that is gone through, epoch milliseconds; None: none was chosen.
        span: length of that range, and of time of charts and lists, which end at the moment, in seconds.
        broker: broker whose throttle is looked into.
        role: its role.
        run: run or command of the journal whose steps are looked into.
        rate: throttle that is tried, an amount as in settings: ``12 MB``.
        topic: text that names of topics contain.
        state: state of the rows that are shown.
        sort: as in ``Paging``.
        play: how many times faster than it went the time from the moment on is shown; None: the moment stands still.
        page: as in ``Paging``.
        rows: most rows of a page; the page itself has at most 200.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster: Annotated[str, _NAME] | None = None
    at: Annotated[int, Field(ge=FIRST_MS, le=LAST_MS)] | None = None
    until: Annotated[int, Field(ge=FIRST_MS, le=LAST_MS)] | None = None
    span: Annotated[int, Field(ge=60, le=7 * 86_400)] = 3600
    broker: Annotated[int, Field(ge=-1, le=2**31 - 1)] | None = None
    role: Role = Role.LEADER
    run: Annotated[str, _NAME] | None = None
    rate: Annotated[str, _NAME] | None = None
    topic: Annotated[str, _NAME] | None = None
    state: Annotated[str, _NAME] | None = None
    sort: Annotated[str, _NAME] | None = None
    play: Annotated[int, Field(ge=1, le=MOST_TIMES)] | None = None
    page: Annotated[int, Field(ge=1, le=100_000)] = 1
    rows: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 200

    @field_validator("rate")
    @classmethod
    def _is_rate(cls, text: str | None) -> str | None:
        if text is not None:
            parse_bytes_per_s(text)
        return text

    @property
    def rate_bytes_per_s(self) -> float | None:
        """Return the throttle that is tried, bytes per second; None if none is."""
        return None if self.rate is None else parse_bytes_per_s(self.rate)

    @property
    def paging(self) -> Paging:
        """Return the part of a table that the API returns."""
        return Paging(self.page, self.rows, self.sort)

    @property
    def shown_paging(self) -> Paging:
        """Return the part of a table that the page shows."""
        return Paging(self.page, min(self.rows, _MOST_SHOWN), self.sort)

    def shows(self, topic: str, state: str) -> bool:
        """Return whether a row is shown: its topic has the asked text in it, and its state is the asked one."""
        return (self.topic or "") in topic and self.state in (None, state)

    def url(self, view: View | str, **changes: Any) -> str:
        """Return the address of a view with some keys changed; a key with None is left out.

        Args:
            view: the view, or a path.
            changes: new values by key.
        """
        kept = {**self.model_dump(exclude_defaults=True), **changes}
        defaults = {name: field.default for name, field in Address.model_fields.items()}
        given = {key: _plain(value) for key, value in kept.items() if value is not None and value != defaults[key]}
        path = f"/{view.value}" if isinstance(view, View) else view
        return f"{path}?{urlencode(given)}" if given else path

    def later_url(self, view: View, by_s: int) -> str:
        """Return the address of a moment some seconds later, or earlier, within the times that an address can have.

        Args:
            view: the view.
            by_s: how much later than its moment, seconds. An address about now stays there.
        """
        at = None if self.at is None else min(max(self.at + 1000 * by_s, FIRST_MS), LAST_MS)
        return self.url(view, at=at, play=None)

    def of_cluster(self, view: View) -> str:
        """Return the address of another view at the same cluster and moment."""
        return Address(cluster=self.cluster, at=self.at, until=self.until, span=self.span).url(view)

    def replay_ms(self, now_ms: int) -> tuple[int, int] | None:
        """Return the first and the last moment of the range that is gone through, epoch milliseconds.

        One that was chosen stays where it is as long as the moment is in it; else the moment is in its middle.
        None: the address is about now.

        Args:
            now_ms: current time, epoch milliseconds. The range that is not chosen ends with the last full minute.
        """
        if self.at is None:
            return None
        span_ms = 1000 * self.span
        last_ms = min(self.at + span_ms // 2, max(self.at, now_ms - now_ms % 60_000))
        if self.until is not None and self.until - span_ms <= self.at <= self.until:
            last_ms = self.until
        return max(FIRST_MS, last_ms - span_ms), last_ms


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
