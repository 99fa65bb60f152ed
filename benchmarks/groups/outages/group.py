"""Group ``outages``: does every alert arrive once, and none that is false, whatever fails, and who is blind how long?

Four real brokers, and a throttled move that never ends. Its three leaders take turns to starve behind their throttle:
in the first play of a scenario an alert begins to fire in the midst of the fault, in the second play one resolves. The
watch notifies a webhook and a Slack bot. What is killed is started again by the watch, or as a supervisor would. The
faults are scripted:

| scenarios | what happens |
|---|---|
| `kill_collector`, `_watch`, `_watch_jvm` | SIGKILL to the collector, to the watch with all its processes, to its JVM |
| `kill_history`, `_history_jvm`, `_receivers` | SIGKILL to the history process, to the JVM of that, to the receivers |
| `kill_ticks_leader` | SIGKILL to the broker that leads partition 0 of the ticks |
| `kill_destination`, `_controller` | SIGKILL to a destination, and to the active controller |
| `hang_...` | SIGSTOP for 10 to 12 s to collector, history, receivers, and each of these three brokers |
| `agent_cut`, `_stalls`, `_drips` | a proxy before the Jolokia of one broker cuts it, stalls it, lets it drip for 8 s |
| `agent_garbled`, `_absurd` | its answers are garbled; one log end offset is the least number of 64 bits |
| `receivers_cut`, `_stall` | a proxy before the receivers cuts or stalls them for 8 and 12 s |
| `kafka_cut`, `_stalls` | a proxy between Kafka and the watch cuts or stalls it for 8 s |
| `kafka_delayed` | the same lets every answer of Kafka to the watch come 300 ms late |
| `store_full`, `_read_only` | the disk of the tables is full, or read-only, for 10 s |
| `gold_file_removed`, `_commit_cut` | a file of a gold table is removed, its newest commit cut off; then repaired |
| `events_file_removed` | a file of `alerts/events` is removed while the watch is down; repaired when it runs again |
| `ticks_deleted`, `partitions_added` | the ticks topic is deleted and made again; it gets more partitions |
| `records_deleted`, `_stopped` | all records of the ticks are deleted; the same while the watch is stopped |
| `collector_clock_forward`, `_back` | the wall clock of the collector is set by 600 s, and right again |
| `watch_clock_back` | the wall clock of the watch is set back by 600 s, and right again |
| `poisoned_ticks`, `ticks_ahead` | somebody else writes ticks: numbers near 2^63, the year 10000, an hour ahead |
| `no_json`, `unknown_clusters` | the same with bytes that are no message, and ticks of thirty unknown clusters |
| `second_watch`, `_collector` | a second watch of the store, a second collector: it must end, and name the first |

An event is lost (`fault_lost`) if a receiver does not show it a minute after everything is back. It is doubled
(`fault_doubled`) if a person sees it twice, as in the group `kills`; an announcement that an alert has become another
matter, as when its broker died, is not. A critical alert is false (`fault_false_critical`) unless it is about the
leader that starves, about the store while that cannot be written, or about ticks that stayed away for 15 s.

**Blind** is who has no fresh verdict: `/metrics` of the watch is asked four times a second for the time of the last
evaluated tick. The blind time of a play is the longest time between two newer ticks, from the fault until the alert has
resolved and everything is back, less one interval of ticks (1 s), less what Kafka itself needed in that time. After the
loss of a broker Kafka needs the time until its metadata name, for every partition of the ticks, a leader and in-sync
replicas that are all up. The time in which the proxy keeps Kafka from the watch, and that in which there is no ticks
topic, are Kafka's too. `fault_blind_s_max` and `fault_blind_s_median` are over all plays but those in which the process
that evaluates ticks was killed: a watch, or its JVM, has to start again before it can evaluate anything, and a JVM with
Spark takes longer than that goal to start. These plays are in `fault_blind_restart_s_max`. A collector or a watch that
is stopped for some seconds counts, with these seconds.

A play in which an alert does not come or resolve within two minutes, or something is not back, has failed
(`fault_failed`); what was lost, doubled, false or blind until then counts. A scenario that this machine cannot play, as
a disk of its own without the right to mount one, is void (`fault_void`), and counts nowhere else.

A run may be made in parts: BENCH_OUTAGES names scenarios (`kill_collector,store_full`), BENCH_OUTAGES_EACH how often
each is played (default 2). What happened in a play is left in `benchmarks/parts/outages`; plays of the same code (the
product's and their own) count together, and are not played again, those that failed neither.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import Say, failure
from benchmarks.groups.outages import schedule
from benchmarks.groups.outages.play import play_once
from benchmarks.groups.outages.record import Record, figures, is_kept, keep, kept, print_records, problems
from benchmarks.groups.outages.scenarios.arrangement import Void
from benchmarks.groups.outages.schedule import Play, batches
from benchmarks.groups.outages.session import Tools, configure, session
from benchmarks.groups.outages.stage.ground import OutageGround
from benchmarks.groups.outages.watching.freshness import Freshness
from benchmarks.results import Figure, parts
from schemas.errors import HeadroomError

_STARTS = 2


def measure(say: Say) -> list[Figure]:
    """Return the figures over the scenarios of BENCH_OUTAGES (default: all), each played BENCH_OUTAGES_EACH times.

    Raises:
        HeadroomError: no such scenario, or the brokers could not be brought back to where one begins.
    """
    each = int(os.environ.get("BENCH_OUTAGES_EACH", "2"))
    wanted = schedule.schedule(os.environ.get("BENCH_OUTAGES", ""), each)
    left = [play for play in wanted if not is_kept(play, _folder(play))]
    if left:
        print_records(_play_all(left, say))
    records = (kept(play, _folder(play)) for play in schedule.schedule(each=each))
    return figures([record for record in records if record is not None])


def _folder(play: Play) -> Path:
    """Return where what happened in a play is kept: under the name of its own code, whatever becomes of others'."""
    return parts("outages", __name__, type(play.scenario).__module__, without=schedule.__name__)


def _play_all(plays: Sequence[Play], say: Say) -> list[Record]:
    """Return plays as they went, each kept when it is over."""
    records: list[Record] = []
    with OutageGround() as ground, Freshness(ground.metrics_port, ground.settings.cluster.name) as fresh:
        configure(ground)
        tools, numbers = Tools(ground, fresh, say), count()
        for batch in batches(plays):
            while batch:
                done = _play_some(tools, batch, numbers)
                records += done
                batch = batch[len(done) :]
    return records


def _play_some(tools: Tools, batch: Sequence[Play], numbers: count[int]) -> list[Record]:
    """Return the first plays of a batch as they went: those that one watch could be had for.

    Raises:
        HeadroomError: no watch came up, or the brokers did not come back.
    """
    for attempt in range(1, _STARTS + 1):
        records: list[Record] = []
        try:
            with session(tools, batch[0].scenario.arrangement, next(numbers)) as stage:
                for play in batch:
                    tools.say(f"{play.name}: {play.scenario.title}")
                    records.append(_kept(play, play_once(stage, play), tools.say))
                    if _spoils(records[-1]) or play.scenario.fresh_after:
                        break
            return records
        except Void as void:
            return [_kept(play, _void(play, str(void)), tools.say) for play in batch]
        except (HeadroomError, KafkaError, OSError) as error:
            if records or attempt == _STARTS:
                raise failure(f"no watch came up, or the brokers did not come back: {error}") from error
            tools.say(f"once more, for the watch did not come up: {error}")
    return []


def _spoils(record: Record) -> bool:
    """Return whether a play did not come to its end, so that the next one needs another watch."""
    return record.failed is not None or record.void is not None


def _kept(play: Play, record: Record, say: Say) -> Record:
    keep(record, play, _folder(play))
    blind = "" if record.blind_s is None else f"blind for {record.blind_s:.1f} s, "
    say(f"    {blind}{record.events} events, {record.lost} lost, {record.doubled} doubled")
    for problem in problems(record):
        say(f"    {problem}")
    return record


def _void(play: Play, why: str) -> Record:
    scenario = play.scenario
    return Record(scenario.name, scenario.title, play.number, scenario.restarts_judging, void=why)
