"""The metrics told to people, from ``schemas/metrics.py`` alone: docs/metrics.md."""

from __future__ import annotations

from schemas.config import DEFAULT_LISTEN, MetricsSettings
from schemas.metrics import METRICS, MetricSpec

_INTRODUCTION = """# Metrics

The process that judges, `headroom watch` or `headroom run watch` (also `run alerts`), answers on `{listen}`
(`metrics.listen`; port 0: any free one, `off`: none): `/metrics` for Prometheus, `/health` for probes. A scrape gets
what was told last; it never asks a broker or waits for Spark.

If another process has that default port, the watch starts without both and says so in its log. An address that
`metrics.listen` names has to be free, or the command ends with the reason.

There is neither TLS nor a password. If you let it listen beyond the machine (`0.0.0.0:9644`), put something before it
that has them, because topic names are labels.

```yaml
scrape_configs:
  - job_name: headroom
    static_configs: [{{targets: ["{listen}"]}}]
```

Dashboards for Grafana and rules for Prometheus are in [docker/](../docker/README.md).

## What can be relied on

- **Unknown is absent, never 0.** A rate, size or time that is not known has no series. `headroom_verdict` says why:
  `no_data` if something the verdict depends on is not known, `unthrottled` or `idle` if there is no throttle to compare
  with or nothing that moves. A comparison with a number leaves absent series out; where absence matters, ask for the
  verdict: `headroom_verdict{{verdict="no_data"}} == 1`.
- **A series ends with what it describes**: when a broker leaves, a move is done, an alert is resolved.
- **No old numbers.** When a cluster's last tick is older than `metrics.stale_after_s` ({stale:.0f} s by default, or
  three intervals if that is longer), its brokers and partitions have no series; `headroom_tick_age_seconds` goes on
  rising, and `headroom_alerts` goes on telling of the alerts that stand, `no_data` among them.
- **Few series.** For each broker and role {by_side} series at most, and for each broker {by_broker}, whatever the
  number of partitions; at most `metrics.top_n` ({top_n}) partitions of a cluster, at most 20 of one leading broker,
  and only such as move.
- **Leaders are counted by the gold job.** What begins with `headroom_leader_` comes from `gold/leader_imbalance`, some
  seconds after the verdicts, and goes at twice `metrics.stale_after_s`. Without that job it is absent; `headroom watch`
  and `headroom run watch` have it.
- Labels: `role` is `leader` (what the broker sends) or `follower` (what it receives); `kind`, `severity` and `state`
  are those of [alerts](alerts.md). Counters and histograms begin with the process.

## All metrics
"""

_HEALTH = """## /health

200 while all is well, 503 when verdicts are missing, always with the reasons as JSON:

```json
{{"status": "unhealthy", "reasons": ["cluster orders: its last tick that was judged is 42 s old, limit 30 s"],
 "clusters": {{"orders": {{"tick_age_s": 42.1, "limit_s": 30.0}}}}, "batch_s": null}}
```

- `ok` (200): the last tick of every configured cluster is younger than `metrics.stale_after_s`.
- `starting` (200): the first tick of a cluster is still awaited.
- `unhealthy` (503): the last tick of a cluster is older; or no tick has come for that time since the start (for
  {first:.0f} s, or three intervals if that is longer, if `metrics.stale_after_s` is not set); or the alert path has
  worked on one batch for so long.

`batch_s` is how long the present batch has been worked on. An alert that fires does not make Headroom unhealthy.

This page is written by `python -m scripts.docs.metrics > docs/metrics.md` from `schemas/metrics.py`.
"""

# What series of a broker and role have for labels, and those of a broker.
_SIDES = ({"role", "broker"}, {"broker"})


def markdown() -> str:
    """Return docs/metrics.md: what can be relied on, and every metric with its type, labels, unit and meaning."""
    settings = MetricsSettings()
    by_side, by_broker = (sum({"role", "broker"} & set(spec.labels) == labels for spec in METRICS) for labels in _SIDES)
    numbers = {"stale": settings.stale_s(0), "top_n": settings.top_n, "by_side": by_side, "by_broker": by_broker}
    lines = [_INTRODUCTION.format(listen=DEFAULT_LISTEN, **numbers)]
    lines += ["| metric | type | labels | unit | meaning |", "|---|---|---|---|---|"]
    lines += [_row(spec) for spec in METRICS]
    return "\n".join([*lines, "", _HEALTH.format(first=settings.first_s(0))])


def _row(spec: MetricSpec) -> str:
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"| `{spec.name}` | {spec.type.value} | {labels} | {spec.unit} | {spec.meaning} |"


if __name__ == "__main__":
    print(markdown(), end="")
