"""Generates docs/metrics.md from ``schemas/metrics.py``."""

from __future__ import annotations

from headroom.schemas.config import DEFAULT_LISTEN, MetricsSettings
from headroom.schemas.metrics import METRICS, MetricSpec

_INTRODUCTION = """# Metrics

The process that evaluates alerts (`headroom watch`, `headroom run watch` or `run alerts`) listens on `{listen}`
(`metrics.listen`; port 0: a free port, `off`: disabled). It serves `/metrics` for Prometheus and `/health` for probes.
A scrape returns the last published state; it never queries a broker or waits for Spark.

If another process uses the default port, the watch starts without the server and logs a warning. If `metrics.listen`
is set and its address is in use, the command ends with an error.

There is neither TLS nor a password. If the server listens beyond the machine (`0.0.0.0:9644`), put a proxy with both in
front of it, because topic names are labels.

```yaml
scrape_configs:
  - job_name: headroom
    static_configs: [{{targets: ["{listen}"]}}]
```

Dashboards for Grafana and rules for Prometheus are in [docker/](../docker/README.md).

## What can be relied on

- **Unknown is absent, never 0.** An unknown rate, size or time has no series. `headroom_verdict` gives the reason:
  `no_data` if an input of the verdict is unknown, `unthrottled` or `idle` if there is no throttle or no move. A
  comparison with a number drops absent series. Where absence matters, query the verdict:
  `headroom_verdict{{verdict="no_data"}} == 1`.
- **A series ends with the object it describes**: when a broker leaves, a move ends, an alert resolves.
- **No stale values.** If a cluster's last tick is older than `metrics.stale_after_s` ({stale:.0f} s by default, or
  three intervals if that is longer), its brokers and partitions have no series. `headroom_tick_age_seconds` continues
  to rise, and `headroom_alerts` still shows active alerts, including `no_data`.
- **Few series.** At most {by_side} series per broker and role, {by_broker} per broker, and {by_resource} per broker and
  resource, whatever the number of partitions. At most `metrics.top_n` ({top_n}) moving partitions per cluster have
  series, and at most 20 per leader.
- **Leader metrics come from the gold job.** Metrics that begin with `headroom_leader_` come from
  `gold/leader_imbalance`, some seconds after the verdicts, and end at twice `metrics.stale_after_s`. Without that job
  they are absent; `headroom watch` and `headroom run watch` include it.
- **Loads come once a minute**: metrics that begin with `headroom_broker_` come from `gold/broker_load`, which the gold
  job writes too.
- **Migrations**: metrics that begin with `headroom_migration_` exist while partitions are agreed in
  `headroom.migrations`, and come with the verdicts of each tick. Their `cluster` is the target.
- Labels: `role` is `leader` (the broker sends) or `follower` (it receives); `kind`, `severity` and `state` are those of
  [alerts](alerts.md). Counters and histograms start with the process.

## All metrics
"""

_HEALTH = """## /health

200 if healthy, 503 if verdicts are missing, always with the reasons as JSON:

```json
{{"status": "unhealthy", "reasons": ["cluster orders: its last evaluated tick is 42 s old, limit 30 s"],
 "clusters": {{"orders": {{"tick_age_s": 42.1, "limit_s": 30.0}}}}, "batch_s": null}}
```

- `ok` (200): the last tick of every configured cluster is younger than `metrics.stale_after_s`.
- `starting` (200): the first tick of a cluster has not arrived yet.
- `unhealthy` (503): the last tick of a cluster is older; or no tick arrived in that time after the start (in
  {first:.0f} s, or three intervals if that is longer, if `metrics.stale_after_s` is not set); or one batch of the alert
  path has been running for that time.

`batch_s` is the running time of the current batch, in seconds. A firing alert does not make Headroom unhealthy.

This page is written by `python -m scripts.docs.metrics > docs/metrics.md` from `schemas/metrics.py`.
"""

# Labels of the series per broker and role, of those per broker, and of those per broker and resource.
_LABEL_SETS = ({"role", "broker"}, {"broker"}, {"broker", "resource"})


def markdown() -> str:
    """Return the text of docs/metrics.md: guarantees, and every metric with type, labels, unit and meaning."""
    settings = MetricsSettings()
    by_side, by_broker, by_resource = (
        sum({"role", "broker", "resource"} & set(spec.labels) == labels for spec in METRICS) for labels in _LABEL_SETS
    )
    numbers = {"stale": settings.stale_s(0), "top_n": settings.top_n, "by_side": by_side, "by_broker": by_broker}
    numbers["by_resource"] = by_resource
    lines = [_INTRODUCTION.format(listen=DEFAULT_LISTEN, **numbers)]
    lines += ["| metric | type | labels | unit | meaning |", "|---|---|---|---|---|"]
    lines += [_row(spec) for spec in METRICS]
    return "\n".join([*lines, "", _HEALTH.format(first=settings.first_s(0))])


def _row(spec: MetricSpec) -> str:
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"| `{spec.name}` | {spec.type.value} | {labels} | {spec.unit} | {spec.meaning} |"


if __name__ == "__main__":
    print(markdown(), end="")
