"""Group ``migration_watch``: what the watch of a target sees of migrations, how soon, and what that costs.

**Forecasts** (part ``forecast``). Twelve partitions are written to at steady, waving, halved, doubled, rising and
falling rates, and their end offsets are a minute and a half ahead. At half time ``switch_eta_s`` of
``gold/migration_progress`` is compared with the time at which the log really got there.
``switch_forecast_error_ratio`` is the difference, divided by the time that was left.

**Losses** (part ``lost``). A routed producer with ``acks=1`` writes to an origin of three brokers. The follower is
suspended, the leader killed, and the follower resumed, which then leads without what it did not have.
``lost_to_alert_s`` is the time from the new leader in Kafka's metadata to the printed alert
``migration_records_lost``.

**Readers** (part ``overtaken``). The offsets of 20 groups grow at rates of their own on an origin that deletes by age
at once. Half of them are too slow. ``overtaken_precision`` and ``overtaken_recall`` compare the groups that
``migration_reader_overtaken`` names with those whose offset fell behind the log start before the end offset, and
``overtaken_notice_s_min`` is the shortest time between the two.

**Cost** (part ``cost``). Made readings of both clusters with 20,000 partitions in 20 topics and 20 groups, of which
each reads two topics, change with each tick. ``migration_tick_s_20k`` is the processor time of a tick: rows, encoding,
parsing, judgement, alerts and metrics, the median of all ticks. ``migration_judge_us_20k`` is that of parsed rows to
progress, by partition.

**Path** (part ``path``). ``alert_path_migrating_s_2k`` is ``alert_path_s_2k`` of the group ``scale`` while 2,000
partitions migrate: the time from a tick to its printed verdicts on throttles. ``migration_verdict_s_2k`` is the time to
the gold rows of its migrations.

**Shield** (part ``shield``). A leader switch on the target makes a throttle too low. ``shielded_delay_ratio`` is the
median time to its alert while the origin hangs and its partitions are shielded, divided by that with an origin that
answers.

``--parts`` chooses some of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.migration_watch.alert_path import path_figures
from benchmarks.groups.migration_watch.forecast import forecast_figures
from benchmarks.groups.migration_watch.lost import lost_figures
from benchmarks.groups.migration_watch.overtaken import overtaken_figures
from benchmarks.groups.migration_watch.shield import shield_figures
from benchmarks.groups.migration_watch.tick_cost import cost_figures
from benchmarks.options.fields import AT_LEAST_ONE, PARTITIONS, SECONDS, option, parts_option
from benchmarks.results import Figure


@dataclass(frozen=True)
class MigrationWatchOptions:
    """Options of the group ``migration_watch``."""

    parts: tuple[str, ...] = parts_option("cost", "forecast", "lost", "overtaken", "path", "shield")
    partitions: int = option(20_000, PARTITIONS, "Migrating partitions of the part cost.")
    ticks: int = option(7, AT_LEAST_ONE, "Ticks of the part cost.")
    prepare_s: float = option(90.0, SECONDS, "How far ahead the end offsets of the part forecast are, seconds.")
    losses: int = option(8, AT_LEAST_ONE, "Losses of the part lost.")
    retention_s: float = option(90.0, SECONDS, "Retention of the part overtaken, seconds.")
    switches: int = option(5, AT_LEAST_ONE, "Leader switches of each kind of the part shield.")


def measure(on_progress: OnProgress, options: MigrationWatchOptions) -> list[Figure]:
    """Return the figures of the chosen parts.

    Raises:
        HeadroomError: a broker could not be started, or something did not happen in time.
    """
    figures = []
    if "cost" in options.parts:
        figures += cost_figures(options.partitions, options.ticks, on_progress)
    if "forecast" in options.parts:
        figures += forecast_figures(options.prepare_s, on_progress)
    if "lost" in options.parts:
        figures += lost_figures(options.losses, on_progress)
    if "overtaken" in options.parts:
        figures += overtaken_figures(options.retention_s, on_progress)
    if "path" in options.parts:
        figures += path_figures(on_progress)
    if "shield" in options.parts:
        figures += shield_figures(options.switches, on_progress)
    return figures
