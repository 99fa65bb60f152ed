"""Five tasks of an engineer in a browser, and the rows of the journal beside those of the equal commands."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka import KafkaProducer
from kafka.structs import TopicPartition as KafkaPartition

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.preferred_leaders import PREFERRED, is_led
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.groups.acting.served_page import CountingBrowser, ServedPage
from headroom.planning.reassignments.run.journal import StepKind
from headroom.schemas.tables import ACTION_JOURNAL
from headroom.streaming.delta.query_table import query

MB = 1_000_000
# Half of it moves for two minutes at the slow rate: looking at what is cancelled, and cancelling it, are two processes,
# which take half a minute on a busy machine, and what ends before them cannot be cancelled.
_TOPIC, _PARTITIONS, _BYTES, _RECORD_BYTES = "task", 6, 40 * MB, 100_000
_FAST, _SLOW = "40MB", "1MB"
_WAIT_S, _BEGIN_S = 120.0, 4.0
# The page recommends no election from an old count of leaders. On a busy machine the first counts take minutes, and
# those after them catch up slowly.
_COUNTED_S = 900.0
_COMPARED = ("command", "step", "state", "subject", "before", "after", "by")
Row = tuple[str, ...]


class DoneTask(NamedTuple):
    """What a task took, and how what it changed differs from what the command changes.

    Attributes:
        name: its name.
        clicks: clicks from an open page to its end.
        rows: rows of the journal of the command.
        differing: rows that only one of both has.
    """

    name: str
    clicks: int
    rows: int
    differing: int


class Tasks:
    """The tasks on one cluster of four brokers, each once from the page and once by its command.

    Args:
        bench: the cluster.
        served: its page.
        browser: a browser that has the token.
        on_progress: gets a line for each task.
    """

    def __init__(
        self, bench: BenchCluster, served: ServedPage, browser: CountingBrowser, on_progress: OnProgress
    ) -> None:
        self._bench = bench
        self._served = served
        self._browser = browser
        self._commands = HeadroomCommands(bench.config)
        self._on_progress = on_progress

    def run(self) -> Iterator[DoneTask]:
        """Yield the tasks, one after the other.

        Raises:
            HeadroomError: one of them did not come to its end.
        """
        yield self._raise_throttle()
        self._create(_TOPIC, [(1 + n % 2, 3 + n % 2) for n in range(_PARTITIONS)])
        yield self._both("drain a broker", self._drain, self._restore)
        yield self._both("cancel a running move", self._cancel, self._restore, self._move_slowly, ("reassign cancel",))
        yield self._both("elect preferred leaders", self._elect, self._restore, self._swap_leaders)
        yield self._both("start a proposal cut at its third action", self._balance, self._restore, self._crowd)

    def _raise_throttle(self) -> DoneTask:
        moved = [MovedPartition((1, 2), (1, 3), 3e6, 60 * MB)]
        with ThrottledMove(self._bench, "starved", moved) as move:
            low = 2e6
            move.start_move(low)

            def by_page() -> str:
                self._browser.open("/alerts")
                button = self._browser.page.locator("#headline").get_by_role("button", name="Run…").first
                button.wait_for()
                self._browser.click(button)
                return self._browser.carry_out()

            return self._both("raise a throttle from its alert", by_page, lambda: move.throttle(low))

    def _both(
        self,
        name: str,
        by_page: Callable[[], str],
        restore: Callable[[], None],
        prepare: Callable[[], None] = lambda: None,
        of_commands: Sequence[str] = (),
    ) -> DoneTask:
        """Do a task from the page, restore what was before, and do the same by the command.

        Args:
            name: name of the task.
            by_page: does it, and returns the command that carried it out.
            restore: restores what was before.
            prepare: makes the state that it begins with.
            of_commands: commands whose rows count; empty: all.
        """
        prepare()
        before = self._rows(of_commands)
        command = by_page()
        clicks, of_page = self._browser.clicks, self._rows(of_commands) - before
        restore()
        prepare()
        before = self._rows(of_commands)
        self._carry_out(command)
        of_command = self._rows(of_commands) - before
        restore()
        only_one = (of_page - of_command) + (of_command - of_page)
        self._on_progress(f"{name}: {clicks} clicks, {of_command.total()} rows, {only_one.total()} differ")
        for row, count in only_one.items():
            self._on_progress(f"  differs {count} times: {row}")
        return DoneTask(name, clicks, of_command.total(), only_one.total())

    def _carry_out(self, command: str) -> None:
        words = shlex.split(command)[1:]
        config = words.index("--config")
        del words[config : config + 2]
        words += ["--yes"] if words[0] in ("reassign", "elections", "balance") else []
        process = self._commands.start(*words, log=self._bench.folder / "commands.log")
        if process.wait() != 0:
            raise failure(f"{command} has ended with {process.returncode}")

    def _rows(self, of_commands: Sequence[str]) -> Counter[Row]:
        rows = query(self._bench.store, ACTION_JOURNAL.path, "SELECT * FROM data") or []
        return compared_rows(row for row in rows if not of_commands or row["command"] in of_commands)

    # The tasks: each from a page that is open.

    def _drain(self) -> str:
        browser, page = self._browser, self._browser.page
        browser.open("/moves")
        browser.click(page.get_by_role("link", name="New move…"))
        page.get_by_label("Topics").fill(_TOPIC)
        page.get_by_label("Drain brokers").fill("4")
        page.get_by_label("Throttle", exact=True).fill(_FAST)
        browser.click(page.get_by_role("button", name="Show the plan"))
        return browser.carry_out()

    def _cancel(self) -> str:
        browser = self._browser
        browser.open("/moves")
        row = browser.page.locator("#content .command", has_text="reassign cancel --all")
        row.wait_for()
        browser.click(row.get_by_role("button", name="Run…"))
        return browser.carry_out()

    def _elect(self) -> str:
        browser = self._browser
        browser.open("/moves")
        browser.click(browser.page.get_by_role("link", name="Leaders"))
        row = browser.page.locator("#content .command", has_text="headroom elections").first
        row.wait_for(timeout=_COUNTED_S * 1000)
        browser.click(row.get_by_role("button", name="Run…"))
        return browser.carry_out()

    def _balance(self) -> str:
        browser, page = self._browser, self._browser.page
        browser.open("/moves")
        browser.click(page.get_by_role("link", name="Leaders"))
        browser.click(page.get_by_role("link", name="Balance…"))
        page.get_by_label("Topics").fill(_TOPIC)
        page.get_by_label("Goals").fill("replicas")
        page.get_by_label("Throttle", exact=True).fill(_FAST)
        browser.click(page.get_by_role("button", name="Show the proposal"))
        again = page.get_by_role("link", name="Change what is wanted")
        again.wait_for()
        browser.click(again)
        page.get_by_label("Only the first actions").fill("3")
        browser.click(page.get_by_role("button", name="Show the proposal"))
        return browser.carry_out()

    # What they begin with.

    def _create(self, topic: str, replicas: Sequence[tuple[int, ...]]) -> None:
        self._before: Mapping[KafkaPartition, list[int]] = {
            KafkaPartition(topic, n): list(own) for n, own in enumerate(replicas)
        }
        assignments = {name.partition: own for name, own in self._before.items()}
        self._bench.admin.create_topics({topic: {"assignments": assignments}}, wait_for_metadata=True)
        write_records(self._bench, topic, len(replicas), _BYTES)

    def _restore(self) -> None:
        """Bring all replicas and leaders back, without a throttle."""
        admin = self._bench.admin
        # A run whose partitions were cancelled removes its throttle first.
        await_true(lambda: not self._served.is_changing(), _WAIT_S, "every run has ended")
        await_true(lambda: not admin.list_partition_reassignments(), _WAIT_S, "nothing moves")
        self._place(self._before)
        self._await_preferred(self._before)

    def _place(self, replicas: Mapping[KafkaPartition, list[int]]) -> None:
        admin = self._bench.admin
        admin.alter_partition_reassignments(dict(replicas))
        await_true(lambda: not admin.list_partition_reassignments(), _WAIT_S, "all replicas are placed")

    def _await_preferred(self, replicas: Mapping[KafkaPartition, list[int]]) -> None:
        """Have all partitions led by the first of their replicas."""
        admin, ordered = self._bench.admin, [replicas[name] for name in sorted(replicas)]

        def are_led() -> bool:
            # It is refused while such a replica is out of sync.
            admin.elect_leaders(PREFERRED, {_TOPIC: list(range(_PARTITIONS))}, raise_errors=False)
            return is_led(admin.describe_topics([_TOPIC])[0]["partitions"], ordered)

        await_true(are_led, _WAIT_S, "the preferred leaders lead")

    def _move_slowly(self) -> None:
        rows = {"topics": _TOPIC, "drain": "4", "throttle": _SLOW}
        action = self._served.post("/new/move", {"cluster": self._served.cluster, "values": rows})
        self._served.await_progress(action, "shown")
        self._served.post(f"{action}/change", {})
        moving = self._bench.admin.list_partition_reassignments
        await_true(lambda: len(moving()) == _PARTITIONS // 2, _WAIT_S, "the slow move has begun")
        time.sleep(_BEGIN_S)

    def _swap_leaders(self) -> None:
        """Let every second partition be led by its second replica."""
        swapped = {name: own[::-1] for name, own in self._before.items() if name.partition % 2}
        self._place(swapped)
        self._await_preferred({**self._before, **swapped})
        self._place(self._before)

    def _crowd(self) -> None:
        """Put all replicas on two brokers."""
        self._place({name: [1 + name.partition % 2, 2 - name.partition % 2] for name in self._before})


def compared_rows(rows: Iterable[Mapping[str, Any]]) -> Counter[Row]:
    """Return rows of the journal without ids, numbers and times.

    A step of a throttled list is a row for each of its entries: those of partitions that have ended between two looks
    at the cluster are removed together, and what ends between two looks is a matter of time.
    """
    counted = Counter[Row]()
    for row in rows:
        is_list = row["step"] == StepKind.LIST.value
        for after in str(row["after"]).split(",") if is_list else [row["after"]]:
            counted[tuple(str({**row, "after": after}[column]) for column in _COMPARED)] += 1
    return counted


def write_records(bench: BenchCluster, topic: str, partitions: int, bytes_each: int) -> None:
    """Write records evenly to the partitions of a topic."""
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap_servers)
    for number in range(partitions * bytes_each // _RECORD_BYTES):
        producer.send(topic, bytes(_RECORD_BYTES), partition=number % partitions)
    producer.close()
