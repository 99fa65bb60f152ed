"""Whether alerts on the target come as soon as otherwise while a shielded origin hangs."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.alert_latency import warm_switches
from benchmarks.groups.migration_watch.watched_clusters import watched_clusters
from benchmarks.results import Figure

_TOPIC, _MIGRATION = "shielded", "shield"
# Reached from the first moment on, so that the migration raises no alert of its own, and is read in every tick.
_END = 0
_PARTITIONS = 12


def shield_figures(switches: int, on_progress: OnProgress) -> list[Figure]:
    """Return how much later alerts come.

    Args:
        switches: leader switches with an origin that answers, and with one that hangs.
        on_progress: prints the progress.

    Raises:
        HeadroomError: an alert did not come in time.
    """
    with watched_clusters(1, 3) as clusters, clusters.writer(_MIGRATION) as writer:
        clusters.create(_TOPIC, [[1]] * _PARTITIONS)
        agreed = clusters.agreed(_MIGRATION, _TOPIC, dict.fromkeys(range(_PARTITIONS), _END))
        writer.write(agreed)
        answering_s = warm_switches(clusters.target, switches, on_progress)
        writer.write([replace(one, shielded=True) for one in agreed])
        clusters.origin.pause(1)
        try:
            hanging_s = warm_switches(clusters.target, switches, on_progress)
        finally:
            clusters.origin.resume(1)
    return [
        Figure("shielded_delay_ratio", median(hanging_s) / median(answering_s), "ratio", switches),
        Figure("shielded_switch_to_alert_s_median", median(hanging_s), "s", switches),
        Figure("unshielded_switch_to_alert_s_median", median(answering_s), "s", switches),
    ]
