"""Group ``idle``: what ``headroom watch`` costs on a cluster where nothing happens.

Three brokers, no reassignment, default settings, for 300 seconds (`--length-s`) from the start of the watch.

- `watch_cores_idle`: mean number of cores of all processes of the watch, from its start on. So it contains the start of
  three JVMs and the warm-up.
- `watch_cores_idle_steady`: the same in the second half of the time. The figures with a role are of this half too.
- `watch_memory_bytes_idle`: greatest sum of the resident memory of all processes. Pages that processes share count in
  each of them. The figures with a role divide them (PSS), and are of the end.
- `watch_files_idle`: files in the store at the end, those of checkpoints included.

Roles: `alerts` is the process that evaluates alerts, `history` the one that writes the tables, `collector` reads the
brokers; `..._jvm` is the Java process of each. Only processes of the watch count, not the brokers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.groups.idle.usage import Usage, commits_by_table, files_by_place, usage_by_role
from benchmarks.options.fields import SECONDS, option
from benchmarks.results import Figure
from headroom.cli.common.watch_process import WatchProcess
from headroom.schemas.config import CollectSettings

_SAMPLE_S = 10.0


@dataclass(frozen=True)
class UsageSample:
    """Usage at one time.

    Attributes:
        at_s: seconds since the start of the watch.
        by_role: usage of each role.
    """

    at_s: float
    by_role: Mapping[str, Usage]

    @property
    def total(self) -> Usage:
        """The usage of all roles."""
        return sum(self.by_role.values(), Usage())


@dataclass(frozen=True)
class IdleOptions:
    """Options of the group ``idle``."""

    length_s: float = option(300.0, SECONDS, "Measured time from the start of the watch, seconds.")


def measure(on_progress: OnProgress, options: IdleOptions) -> list[Figure]:
    """Return cores, memory and files of an idle watch.

    Raises:
        HeadroomError: the watch gave no verdict, or ended.
    """
    with BenchCluster(3) as bench:
        bench.configure(CollectSettings().interval_s)
        with bench.watch() as watch:
            samples = _sample(watch, options.length_s, on_progress)
            store = Path(bench.store)
            files, commits = files_by_place(store), commits_by_table(store)
    for place, count in sorted(files.items()):
        on_progress(f"{place}: {count} files, {commits.get(place, 0)} commits")
    return figures(samples, sum(files.values()))


def _sample(watch: WatchProcess, length_s: float, on_progress: OnProgress) -> list[UsageSample]:
    samples: list[UsageSample] = []
    while (at_s := time.monotonic() - watch.started_s) < length_s:
        samples.append(UsageSample(at_s, usage_by_role(watch)))
        on_progress(_text(samples[-1]))
        watch.require_running()
        time.sleep(_SAMPLE_S)
    samples.append(UsageSample(time.monotonic() - watch.started_s, usage_by_role(watch)))
    on_progress(_text(samples[-1]))
    return samples


def _text(sample: UsageSample) -> str:
    roles = (
        f"{role} {used.cpu_s:.1f} s {used.share_bytes / 1e6:.0f} MB" for role, used in sorted(sample.by_role.items())
    )
    return f"{sample.total.cpu_s:.1f} s, {sample.total.resident_bytes / 1e6:.0f} MB ({', '.join(roles)})"


def figures(samples: list[UsageSample], files: int) -> list[Figure]:
    """Return the figures of a run.

    Args:
        samples: in order of time, from the start of the watch to the end of the run.
        files: files in the store at the end.
    """
    end, middle = samples[-1], min(samples, key=lambda sample: abs(sample.at_s - samples[-1].at_s / 2))
    n, half_s = len(samples), end.at_s - middle.at_s
    measured = [
        Figure("watch_cores_idle", end.total.cpu_s / end.at_s, "cores", n),
        Figure("watch_cores_idle_steady", (end.total.cpu_s - middle.total.cpu_s) / half_s, "cores", n),
        Figure("watch_memory_bytes_idle", max(sample.total.resident_bytes for sample in samples), "bytes", n),
        Figure("watch_memory_bytes_idle_shared", end.total.share_bytes, "bytes", n),
        Figure("watch_files_idle", files, "files", 1),
        Figure("watch_measured_s", end.at_s, "s", 1),
    ]
    for role, used in sorted(end.by_role.items()):
        cores = (used.cpu_s - middle.by_role.get(role, Usage()).cpu_s) / half_s
        measured.append(Figure(f"watch_cores_idle_{role}", cores, "cores", n))
        measured.append(Figure(f"watch_memory_bytes_idle_{role}", used.share_bytes, "bytes", n))
    return measured
