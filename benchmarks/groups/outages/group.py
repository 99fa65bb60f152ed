"""Group ``outages``: delivery of alerts, false alerts and time without verdicts under scripted faults.

Four real brokers run a throttled move that never ends. Its three leaders take turns to starve behind their throttle. In
the first run of a scenario an alert begins to fire during the fault. In the second run one resolves. The watch notifies
a webhook and a Slack bot. Killed processes are restarted by the watch, or by the benchmark as a supervisor would. The
faults are scripted:

| scenarios | fault |
|---|---|
| `kill_collector`, `_watch`, `_watch_jvm` | SIGKILL to the collector, to the watch with all its processes, to its JVM |
| `kill_history`, `_history_jvm`, `_receivers` | SIGKILL to the history process, to its JVM, to the receivers |
| `kill_ticks_leader` | SIGKILL to the leader of partition 0 of the ticks topic |
| `kill_destination`, `_controller` | SIGKILL to a destination, and to the active controller |
| `hang_...` | SIGSTOP for 10 to 12 s to collector, history, receivers, and each of these three brokers |
| `agent_cut`, `_stalls`, `_drips` | a proxy in front of one broker's Jolokia cuts, stalls, or drips answers, for 8 s |
| `agent_garbled`, `_absurd` | its answers are garbled; one log end offset is the lowest 64-bit number |
| `receivers_cut`, `_stall` | a proxy in front of the receivers cuts or stalls them for 8 and 12 s |
| `kafka_cut`, `_stalls` | a proxy between Kafka and the watch cuts or stalls the connection for 8 s |
| `kafka_delayed` | the same proxy delays every answer of Kafka by 300 ms |
| `store_full`, `_read_only` | the disk of the tables is full, or read-only, for 10 s |
| `gold_file_removed`, `_commit_cut` | a file of a gold table is removed, its newest commit truncated; then repaired |
| `events_file_removed` | a file of `alerts/events` is removed while the watch is down; repaired after its restart |
| `ticks_deleted`, `partitions_added` | the ticks topic is deleted and created again; it gets more partitions |
| `records_deleted`, `_stopped` | all records of the ticks topic are deleted; the same while the watch is stopped |
| `collector_clock_forward`, `_back` | the wall clock of the collector is off by 600 s, then right again |
| `watch_clock_back` | the wall clock of the watch is 600 s behind, then right again |
| `poisoned_ticks`, `ticks_ahead` | a foreign producer writes ticks: numbers near 2^63, the year 10000, an hour ahead |
| `no_json`, `unknown_clusters` | it writes bytes that are no message, and ticks of thirty unknown clusters |
| `second_watch`, `_collector` | a second watch of the store, a second collector: it must exit and name the first |

**Events.** An event is lost (`fault_lost`) if a receiver does not show it one minute after the recovery. It is doubled
(`fault_doubled`) if a person sees it twice, as in the group `kills`. A new announcement because the situation changed,
such as a dead broker, is not doubled. A critical alert is false (`fault_false_critical`) unless it is about the
starving leader, about the store while that cannot be written, or about ticks that were missing for 15 s.

**Blind time** is the time without a fresh verdict. The benchmark reads the time of the last evaluated tick from
`/metrics` four times a second. The blind time of a run is the longest gap between two newer ticks, from the fault until
the alert has resolved and everything has recovered. One tick interval (1 s) and Kafka's own failover time are
subtracted. Kafka's failover lasts until its metadata shows, for every partition of the ticks topic, a leader and
in-sync replicas that are all up. Times when the proxy blocks Kafka, or when there is no ticks topic, count as Kafka's
too.

`fault_blind_s_max` and `fault_blind_s_median` cover all runs in which the process that evaluates ticks was not killed.
A killed watch or JVM has to start again first, and a JVM with Spark takes longer to start than that goal. Those runs
are in `fault_blind_restart_s_max`. Runs in which a collector or a watch was stopped for some seconds count, these
seconds included.

**Failed and void runs.** A run has failed (`fault_failed`) if an alert does not fire or resolve within two minutes, or
something does not recover. Its lost, doubled and false alerts and its blind time still count. A run is void
(`fault_void`) if this machine cannot run the scenario, for example without the right to mount a disk. It counts nowhere
else.

**Parts.** `--scenarios` names scenarios (`kill_collector,store_full`), `--each` the number of runs per scenario.
`benchmarks/parts/outages` keeps the record of each run. Runs recorded with the same code (the product's and their own)
count together and are not repeated, failed ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from kafka.errors import KafkaError

from benchmarks.faults.disks import Void
from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.fixtures.freshness import Freshness
from benchmarks.fixtures.part_records import PartRecords, print_outcomes
from benchmarks.groups.outages import schedule
from benchmarks.groups.outages.outage_cluster import OutageCluster
from benchmarks.groups.outages.play import play_once
from benchmarks.groups.outages.record import HEADER, RunRecord, figures
from benchmarks.groups.outages.schedule import Play, batches
from benchmarks.groups.outages.session import ScenarioTools, configure, session
from benchmarks.options.fields import AT_LEAST_ONE, CheckedText, option
from benchmarks.results import Figure, parts
from headroom.schemas.errors import HeadroomError

_STARTS = 2


@dataclass(frozen=True)
class OutagesOptions:
    """Options of the group ``outages``."""

    scenarios: str = option("", CheckedText(schedule.schedule), "Names of scenarios, comma-separated; default: all.")
    each: int = option(2, AT_LEAST_ONE, "Runs of each scenario.")


def measure(on_progress: OnProgress, options: OutagesOptions) -> list[Figure]:
    """Play the runs that are left, and return the figures over all that were played with this code.

    Raises:
        HeadroomError: a scenario is unknown, or the brokers could not be restored.
    """
    wanted = schedule.schedule(options.scenarios, options.each)
    if left := RECORDS.without_record(wanted):
        print_outcomes(HEADER, [(one.row(), one.problems()) for one in _play_batches(left, on_progress)])
    return figures([RunRecord(**fields) for fields in RECORDS.read_all(schedule.schedule(each=options.each))])


def _folder(play: Play) -> Path:
    """Return the folder for the record of a run. It depends only on the scenario's own code, not on other scenarios."""
    return parts("outages", __name__, type(play.scenario).__module__, without=schedule.__name__)


RECORDS: PartRecords[Play] = PartRecords(_folder)


def _play_batches(plays: Sequence[Play], on_progress: OnProgress) -> list[RunRecord]:
    """Run plays, and return their records. Each record is stored when its run is over."""
    records: list[RunRecord] = []
    with OutageCluster() as bench, Freshness(bench.metrics_port, bench.settings.cluster.name) as fresh:
        configure(bench)
        tools, numbers = ScenarioTools(bench, fresh, on_progress), count()
        for batch in batches(plays):
            while batch:
                done = _play_batch(tools, batch, numbers)
                records += done
                batch = batch[len(done) :]
    return records


def _play_batch(tools: ScenarioTools, batch: Sequence[Play], numbers: count[int]) -> list[RunRecord]:
    """Run the plays of a batch until one needs a new watch, and return their records.

    Raises:
        HeadroomError: no watch started, or the brokers did not recover.
    """
    for attempt in range(1, _STARTS + 1):
        records: list[RunRecord] = []
        try:
            with session(tools, batch[0].scenario.arrangement, next(numbers)) as context:
                for play in batch:
                    tools.on_progress(f"{play.name}: {play.scenario.title}")
                    records.append(_store(play, play_once(context, play), tools.on_progress))
                    # A play that did not complete leaves its watch in an unknown state.
                    is_complete = records[-1].failed is None and records[-1].void is None
                    if not is_complete or play.scenario.fresh_after:
                        break
            return records
        except Void as void:
            return [_store(play, replace(play.new_record(), void=void.rule), tools.on_progress) for play in batch]
        except (HeadroomError, KafkaError, OSError) as error:
            if records or attempt == _STARTS:
                raise failure(f"no watch started, or the brokers did not recover: {error}") from error
            tools.on_progress(f"repeated, because the watch did not start: {error}")
    return []


def _store(play: Play, record: RunRecord, on_progress: OnProgress) -> RunRecord:
    """Store a record, print it, and return it."""
    RECORDS.write(play, asdict(record))
    blind = "" if record.blind_s is None else f"blind for {record.blind_s:.1f} s, "
    on_progress(f"    {blind}{record.events} events, {record.lost} lost, {record.doubled} doubled")
    for problem in record.problems():
        on_progress(f"    {problem}")
    return record
