"""Helpers shared by tests on real brokers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, KafkaTimeoutError, NotControllerError, TopicAlreadyExistsError

from headroom.cli.common.child_process import ChildProcess, headroom_command
from headroom.cli.common.stopping import has_ended
from headroom.cli.common.watch_process import VerdictProcess
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.patience import Patience
from headroom.cluster.throttles.rates import clear_rates
from headroom.schemas.config import ClusterSettings, Settings

T = TypeVar("T")
_POLL_S = 0.1
# To read a table takes a good part of what the processes that write it want of two cores.
TABLE_POLL_S = 1.0
RECORD_BYTES = 10_000


def wait_until(
    condition: Callable[[], T],
    deadline_s: float,
    what: str,
    describe: Callable[[], object] | None = None,
    poll_s: float = _POLL_S,
) -> T:
    """Return what the condition returns as soon as that is true.

    Args:
        condition: looked at until it returns something true.
        deadline_s: longest wait in seconds; longer while the machine is busy.
        what: what is waited for, as the failure names it.
        describe: tells what was last seen; None: what the condition returned last.
        poll_s: time from one look to the next, seconds.

    Raises:
        AssertionError: the deadline passed; says what was last seen.
    """
    patience = Patience(deadline_s)
    while not (seen := condition()):
        if patience.is_over():
            last = describe() if describe else seen
            raise AssertionError(f"{what}: not within {patience}; last seen: {last!r}")
        time.sleep(poll_s)
    return seen


def output_of(process: subprocess.Popen[str], deadline_s: float) -> tuple[str, str]:
    """Return what a process prints until it ends, on both outputs.

    Args:
        process: a process with pipes.
        deadline_s: longest wait in seconds; longer while the machine is busy.

    Raises:
        AssertionError: the deadline passed; says what was printed so far. The process is killed.
    """
    patience = Patience(deadline_s)
    while True:
        try:
            return process.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired as running:
            if not patience.is_over():
                continue
            process.kill()
            printed = [part.decode(errors="replace") for part in (running.stdout, running.stderr) if part]
            raise AssertionError(f"{process.args}: not ended within {patience}; printed: {printed}") from None


def exit_code(process: subprocess.Popen[Any], deadline_s: float) -> int:
    """Return the exit code of a process that is to end within a time; longer while the machine is busy."""
    wait_until(lambda: process.poll() is not None, deadline_s, f"the end of {process.args!r}")
    return process.returncode


def completed(command: Sequence[str], deadline_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return its exit code and what it printed; see ``output_of`` for the deadline.

    Args:
        command: command line.
        deadline_s: longest wait in seconds; longer while the machine is busy.
        options: of ``subprocess.Popen``, in place of a pipe for each output.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **{**pipes, **options}) as process:
        out, err = output_of(process, deadline_s)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextmanager
def admin_of(cluster: EmbeddedCluster) -> Iterator[KafkaAdminClient]:
    """Yield an admin client of a cluster, and close it."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        yield admin
    finally:
        admin.close()


def create_topic(
    cluster: EmbeddedCluster, topic: str, replicas: Mapping[int, list[int]], configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic with these replicas of each partition, the preferred leader first, and wait for its leaders."""
    assignments = {p: list(r) for p, r in replicas.items()}
    new = NewTopic(topic, -1, -1, replica_assignments=assignments, topic_configs=dict(configs or {}))

    def create() -> bool:
        # Again where the controllers just elect one of them; made by an attempt whose answer was lost, it is there.
        with suppress(TopicAlreadyExistsError), admin_of(cluster) as admin:
            try:
                admin.create_topics([new])
            except (KafkaTimeoutError, NotControllerError, RuntimeError):
                return False
        return True

    wait_until(create, 60, f"topic {topic}")
    expected = {p: r[0] for p, r in replicas.items()}
    wait_until(lambda: leaders(cluster, topic) == expected, 30, f"leaders of {topic}", lambda: leaders(cluster, topic))


def fill(cluster: EmbeddedCluster, topic: str, size_bytes: Mapping[int, int]) -> None:
    """Write this many bytes, in records that cannot be compressed, to each partition.

    A move that a throttle is to hold needs many times what passes at once: Kafka looks at its quota before a fetch
    and not within it, so one of 1 MiB, and ten to eleven seconds of the rate, always go through.
    """
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)) as producer:
        sent = [
            producer.send(topic, os.urandom(RECORD_BYTES), partition=partition)
            for partition, size in size_bytes.items()
            for _ in range(size // RECORD_BYTES)
        ]
        producer.flush()
    for record in sent:
        record.get(0)


def bytes_of(path: Path) -> bytes:
    """Return what a file has; nothing if it is gone, as what a broker writes beside its checkpoints and renames."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


def clear(cluster: EmbeddedCluster) -> None:
    """Delete all topics of a cluster and every throttle; all its brokers have to be up, and nothing may be moving."""
    alive = len(cluster.brokers)
    # The controllers notice only after some seconds.
    down = [broker.broker_id for broker in cluster.brokers if not _works(broker.pid)]
    assert not down, f"a module has left brokers {down} killed or frozen"
    settings = ClusterSettings(bootstrap_servers=cluster.bootstrap_servers)
    with admin_of(cluster) as admin:
        wait_until(lambda: len(_unfenced(admin)) == alive, 60, "all brokers", lambda: _unfenced(admin))
        wait_until(lambda: not admin.list_partition_reassignments(), 60, "the end of moves that a module has left")
        topics = [topic for topic in admin.list_topics() if not topic.startswith("__")]
        if topics:
            admin.delete_topics(topics)
        wait_until(lambda: set(admin.list_topics()) <= {"__consumer_offsets"}, 60, "no topics", admin.list_topics)
    clear_rates(Settings(cluster=settings), [b.broker_id for b in cluster.brokers], cluster_default=True)


def add_group_topic(cluster: EmbeddedCluster) -> None:
    """Let a cluster create the topic of consumer groups, which stays.

    A module that counts leaders or partitions would otherwise find it or not, by what ran before.
    """

    def created(admin: KafkaAdminClient) -> bool:
        # Without the topic no coordinator is available, and looking for one creates it.
        with suppress(KafkaError):
            admin.describe_groups(["headroom-tests"])
        return "__consumer_offsets" in admin.list_topics()

    with admin_of(cluster) as admin:
        wait_until(lambda: created(admin), 60, "the topic of consumer groups")


def _works(pid: int) -> bool:
    return not has_ended(pid) and psutil.Process(pid).status() != psutil.STATUS_STOPPED


def _unfenced(admin: KafkaAdminClient) -> list[int]:
    return [broker["broker_id"] for broker in admin.describe_cluster()["brokers"] if not broker["is_fenced"]]


def leaders(cluster: EmbeddedCluster, topic: str) -> dict[int, int]:
    """Return the leader's broker id of each partition, -1 for none; nothing if the broker that was asked is down."""
    try:
        with admin_of(cluster) as admin:
            found = admin.describe_topics([topic])[0]["partitions"]
    except KafkaError:
        return {}
    return {int(p["partition_index"]): int(p["leader_id"]) for p in found}


@contextmanager
def alert_path(config: Path, log: Path) -> Iterator[VerdictProcess]:
    """Run collector and alert path, without the history of a whole ``headroom watch``, which takes most of its time.

    Args:
        config: settings file.
        log: file to which the alert path's log is appended.
    """
    command = headroom_command("run", "alerts", "--config", str(config), "--format", "json", "--with-parent")
    collector = ChildProcess("collector", ["collect"], str(config))
    try:
        with VerdictProcess("headroom run alerts", command, log) as process:
            yield process
    finally:
        collector.stop()


def partition(topic: str, number: int) -> TopicPartition:
    """Return the key by which kafka-python names a partition."""
    return TopicPartition(topic, number)


def living(pids: Iterable[int]) -> list[int]:
    """Return the processes that are still running."""
    return [pid for pid in pids if not has_ended(pid)]


def kill_watch(watch: VerdictProcess) -> list[int]:
    """Kill a watch and its Spark JVM, as a crash would, and return the ids of all its processes.

    Its other children are not killed: they have to notice that their parent has ended.
    """
    tree, jvms = watch.processes(), spark_jvms(watch)
    for process in [*tree[:1], *jvms]:
        process.kill()
    psutil.wait_procs(tree[:1])
    return [process.pid for process in tree]


def spark_jvms(watch: VerdictProcess) -> list[psutil.Process]:
    """Return the JVMs of the Spark of a watch itself, without those of its children."""
    tree, found = watch.processes(), []
    for process in tree[1:]:
        # Spark's JVM has short-lived children of its own.
        with suppress(psutil.NoSuchProcess):
            if process.ppid() == tree[0].pid and process.name() == "java":
                found.append(process)
    return found


def command_line(process: psutil.Process) -> str:
    """Return the command line of a process; nothing of one that has ended since, as Spark's own small helpers do."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""
