"""Builders of Grafana dashboards: each panel has only its own settings, and panels are placed row by row.

No library: grafana-foundation-sdk needs a newer Python than Headroom does, and grafanalib is no longer maintained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# Grafana's names of units. Those of bytes have steps of 1,000, as everywhere in Headroom.
BYTES, BYTES_PER_S, SECONDS, COUNT, RATIO, PER_S, SHARE = "decbytes", "Bps", "s", "short", "none", "cps", "percentunit"
GREEN, YELLOW, ORANGE, RED, BLUE = "green", "yellow", "orange", "red", "blue"
GREY, PURPLE = "text", "purple"

_COLUMNS = 24
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA_VERSION = 39


@dataclass(frozen=True)
class Query:
    """One expression of a panel, and the legend of its series; ``{{label}}`` is replaced by a label's value."""

    expr: str
    legend: str = "{{cluster}}"


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        kind: Grafana's name of the panel type.
        title: title.
        description: how to read the panel.
        queries: expressions; in a table one per column.
        unit: unit of the values.
        steps: colours and the value from which each applies, the first without one: ``((GREEN, None), (RED, 1))``.
        width: width in columns, of 24.
        height: height in Grafana's rows.
        empty: text shown if there is no value.
        values: text and colour shown instead of a number; in a table, of a time.
        columns: name and unit of each column of a table.
        options: further options of the panel type.
        custom: style of lines and bars.
    """

    kind: str
    title: str
    description: str
    queries: Sequence[Query]
    unit: str
    steps: Sequence[tuple[str, float | None]] = ((BLUE, None),)
    width: int = 12
    height: int = 8
    empty: str = ""
    values: Mapping[int, tuple[str, str]] | None = None
    columns: Sequence[tuple[str, str]] = ()
    options: Mapping[str, Any] | None = None
    custom: Mapping[str, Any] | None = None

    def as_json(self, number: int, x: int, y: int) -> Json:
        """Return the panel in Grafana's JSON format, at a position in the grid."""
        steps = [{"color": color, "value": value} for color, value in self.steps]
        defaults: Json = {
            "unit": self.unit,
            "color": {"mode": "thresholds" if len(steps) > 1 and self.kind != "timeseries" else "palette-classic"},
            "thresholds": {"mode": "absolute", "steps": steps},
            "custom": dict(self.custom or {}),
        }
        if self.empty:
            defaults["noValue"] = self.empty
        if self.values and not self.columns:
            defaults["mappings"] = self._mappings()
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": _DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(n, query) for n, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": defaults, "overrides": self._overrides()},
            "options": dict(self.options or {}),
            **({"transformations": self._as_one_table()} if self.columns else {}),
        }

    def _target(self, number: int, query: Query) -> Json:
        # These panel types show only the current value.
        now = self.kind in ("stat", "table", "bargauge")
        return {
            "refId": chr(ord("A") + number),
            "datasource": _DATASOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
            "instant": now,
            "range": not now,
            "format": "table" if self.columns else "time_series",
        }

    def _mappings(self) -> list[Json]:
        values = enumerate((self.values or {}).items())
        texts = {str(n): {"text": text, "color": color, "index": index} for index, (n, (text, color)) in values}
        return [{"type": "value", "options": texts}]

    def _overrides(self) -> list[Json]:
        return [
            {
                "matcher": {"id": "byName", "options": f"Value #{chr(ord('A') + number)}"},
                "properties": [
                    {"id": "displayName", "value": name},
                    {"id": "unit", "value": unit},
                    # In a table they are times, and a number of another column is a number.
                    *([{"id": "mappings", "value": self._mappings()}] if self.values and unit == SECONDS else []),
                ],
            }
            for number, (name, unit) in enumerate(self.columns)
        ]

    def _as_one_table(self) -> list[Json]:
        return [{"id": "merge", "options": {}}, {"id": "organize", "options": {"excludeByName": {"Time": True}}}]


def stat(title: str, description: str, query: Query, unit: str, **more: Any) -> Panel:
    """Return a panel with one number per series."""
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "colorMode": "value",
        "graphMode": "none",
        **more.pop("options", {}),
    }
    return Panel("stat", title, description, [query], unit, **{"width": 6, "height": 5, "options": options, **more})


def time_series(title: str, description: str, queries: Sequence[Query], unit: str, **more: Any) -> Panel:
    """Return a panel with one line per series over time; without a series there is no line."""
    options = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}}
    # Unknown values have no series, so a gap must not be bridged.
    custom = {"lineWidth": 2, "fillOpacity": 5, "spanNulls": False, **more.pop("custom", {})}
    options["tooltip"] = {"mode": "multi", "sort": "desc"}
    return Panel("timeseries", title, description, queries, unit, options=options, custom=custom, **more)


def bar_gauge(title: str, description: str, query: Query, unit: str, **more: Any) -> Panel:
    """Return a panel with one bar per series, for its current value."""
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"]},
        "orientation": "horizontal",
        "displayMode": "basic",
        "showUnfilled": True,
    }
    return Panel("bargauge", title, description, [query], unit, options=options, **more)


def state_timeline(
    title: str, description: str, query: Query, values: Mapping[int, tuple[str, str]], **more: Any
) -> Panel:
    """Return a panel with one band per series, coloured by the meaning of its numbers."""
    options = {"mergeValues": True, "showValue": "auto", "legend": {"displayMode": "list", "placement": "bottom"}}
    custom = {"fillOpacity": 80, "lineWidth": 0}
    return Panel(
        "state-timeline", title, description, [query], COUNT, values=values, options=options, custom=custom, **more
    )


def table(title: str, description: str, columns: Mapping[str, tuple[str, str]], **more: Any) -> Panel:
    """Return a table with one row per set of labels.

    Args:
        title: title.
        description: how to read the table.
        columns: expression and unit by column name; the results have the same labels and no metric name.
        more: further attributes of the panel.
    """
    queries = [Query(expr, name) for name, (expr, _) in columns.items()]
    headers = [(name, unit) for name, (_, unit) in columns.items()]
    options = {"showHeader": True, "cellHeight": "sm"}
    return Panel("table", title, description, queries, COUNT, columns=headers, options=options, width=24, **more)


def variable(name: str, label: str, query: str) -> Json:
    """Return a dashboard variable with the values of a label; all values are selected at first."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard(
    uid: str, title: str, description: str, rows: Sequence[Sequence[Panel]], variables: Sequence[Json], events: Query
) -> Json:
    """Return a dashboard.

    Args:
        uid: id in links.
        title: title.
        description: question that the dashboard answers.
        rows: panels, from left to right and from top to bottom.
        variables: variables in addition to the data source.
        events: query of the annotations on every panel.
    """
    panels: list[Json] = []
    y = 0
    for row in rows:
        x = 0
        for panel in row:
            panels.append(panel.as_json(len(panels) + 1, x, y))
            x += panel.width
        assert x <= _COLUMNS, f"{title}: a row is too wide"
        y += max(panel.height for panel in row)
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    annotation = {
        "name": "Alerts that fired",
        "datasource": _DATASOURCE,
        "enable": True,
        "iconColor": RED,
        "expr": events.expr,
        "titleFormat": events.legend,
        "step": "15s",
    }
    link = {"title": "Headroom", "type": "dashboards", "tags": ["headroom"], "includeVars": True, "keepTime": True}
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["headroom"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [link],
        "annotations": {"list": [annotation]},
        "templating": {"list": [source, *variables]},
        "panels": panels,
    }
