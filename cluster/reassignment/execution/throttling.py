"""The throttle of a run: its list entries and rates come before a batch, and go as soon as nothing needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from headroom.cluster.reassignment.execution.control import ClusterControl, IfCleared, RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.planning.quotas.load import ThrottleLoad
from headroom.planning.reassignments.run.changes import (
    BatchChanges,
    ClearedThrottle,
    PlannedRate,
    broker_roles_of,
    cleared_throttle,
    entries_to_remove,
    is_changed_by_others,
    lowered_by_others,
    rate_restoration,
    rates_to_set,
    unknown_rates,
    wanted_rates,
)
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.planning.reassignments.run.directories import copying_brokers
from headroom.planning.reassignments.run.journal import (
    Entry,
    JournalStep,
    StepKind,
    StepState,
    ThrottledList,
    rate_subject,
)
from headroom.planning.reassignments.run.loads import (
    enough_bytes_per_s,
    lasting_required_bytes_per_s,
    loads_during,
    loads_now,
    loads_of_batch,
    required_bytes_per_s,
    short_throttles,
    slow_text,
)
from headroom.planning.reassignments.run.record import RunState, Submission
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.planning.throttles.rate_options import rate_options
from headroom.planning.throttles.replica_lists import format_replica_list
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, BrokerRole, LogDirsRate, ReplicaKey, TopicPartition
from headroom.schemas.text.amounts import rate_text
from headroom.schemas.text.names import broker_names


class RunThrottle:
    """Sets, raises and takes back the throttle of a run.

    Args:
        control: the cluster.
        journal: the journal of the run.
        policy: rates and their limits.
        output: where it reports to.

    Attributes:
        cleared_reason: what others have cleared, if the current batch is to be cancelled for it; else None.
    """

    def __init__(self, control: ClusterControl, journal: RunJournal, policy: RunPolicy, output: RunOutput) -> None:
        self._control = control
        self._journal = journal
        self._policy = policy
        self._output = output
        # Rate of the current batch; None: no throttle.
        self._rate = policy.throttle_bytes_per_s
        self._reported: set[tuple[BrokerRole, float | None]] = set()
        # Rates of others that were in force when the current batch began, and were enough.
        self._of_others: frozenset[BrokerRate] = frozenset()
        # Rates that others have lowered during the run, as they were named last.
        self._lowered: Mapping[BrokerRate, int] = {}
        # Rates that the look before could not read, and those of them that were named.
        self._unknown: frozenset[BrokerRate] = frozenset()
        self._named_unknown: frozenset[BrokerRate] = frozenset()
        # What the look before found cleared, and what was left cleared.
        self._cleared = self._left = ClearedThrottle()
        self.cleared_reason: str | None = None

    def rate_for(self, snapshot: RunSnapshot, changes: BatchChanges) -> int | None:
        """Return the rate for a batch: that of the policy, or a higher one that is enough, if the policy allows it.

        Raises:
            HeadroomError: the rate is too low for the batch, and the policy neither raises nor forces it.
        """
        # Not that of an earlier batch, which may have been raised.
        rate = self._rate = self._policy.throttle_bytes_per_s
        if rate is None:
            return None
        loads = loads_of_batch(snapshot, changes.moves, changes.rates)
        short = short_throttles(loads)
        if not short:
            slow = slow_text(loads, self._policy.throttles)
            if slow is not None:
                self._output.line(slow)
            return rate
        greatest = max(short, key=required_bytes_per_s)
        needed = required_bytes_per_s(greatest)
        enough = enough_bytes_per_s(short, self._policy.throttles)
        up_to = self._policy.auto_up_to_bytes_per_s
        if up_to is not None and up_to > needed and not self._are_changed_by_others(short, snapshot):
            self._rate = max(rate, min(enough, up_to))
            return self._rate
        who = f"broker {greatest.broker} as {greatest.role.value}"
        rule = f"{_rate_or_none(greatest.throttle_bytes_per_s)} is too low: {who} must exceed {_rate_or_none(needed)}"
        if self._policy.force:
            self._output.line(f"Throttle {rule}; it is used all the same (--force).")
            return rate
        words = " ".join(rate_options({"--throttle": enough}))
        remedy = f"Run with {words} or more, in smaller batches, or with --force."
        raise HeadroomError("--throttle", rule, remedy)

    def _are_changed_by_others(self, loads: Collection[ThrottleLoad], snapshot: RunSnapshot) -> bool:
        """Return whether others have changed a rate of these loads: it stays, whatever the rate of the batch is."""
        rates, record = snapshot.rates, self._journal.record
        names = {load.broker_role for load in loads} & rates.keys()
        return any(is_changed_by_others(name, rates[name], record) for name in names)

    def apply(self, changes: BatchChanges, snapshot: RunSnapshot) -> None:
        """Append the entries and set the rates of a batch.

        Raises:
            HeadroomError: a topic or a broker refused, or the journal cannot be written.
        """
        needed = broker_roles_of(changes.moves) | {LogDirsRate(replica.broker) for replica in changes.places}
        in_force = {name for name, rate in snapshot.rates.items() if rate.in_force is not None}
        self._of_others = frozenset((needed & in_force) - changes.rates.keys())
        steps = [
            *_list_steps(changes.entries, snapshot),
            *_rate_steps(changes.rates, StepState.INTENDED),
        ]
        self._cleared = self._left = ClearedThrottle()
        if not steps:
            return
        self._journal.write([*self._no_longer_own(changes.rates), *steps])
        if changes.entries:
            self._control.append_entries(changes.entries)
        failures = self._control.set_rates({n: r.after for n, r in changes.rates.items()}) if changes.rates else {}
        if failures:
            reasons = "; ".join(f"broker {broker}: {reason}" for broker, reason in sorted(failures.items()))
            remedy = "See that it is up and that this user may AlterConfigs, then run the same command again."
            raise HeadroomError("the throttle rates", f"were not set ({reasons})", remedy)
        self._journal.write([replace(step, state=StepState.DONE) for step in steps])

    def look(
        self, snapshot: RunSnapshot, moving: Collection[TopicPartition], placing: Collection[ReplicaKey] = ()
    ) -> None:
        """Report throttles that have become too low, with the command that raises them, or raise them.

        A broker that was down when the batch began gets its rate once it is up. What others set meanwhile is theirs;
        what they clear is dealt with as the policy says.

        Args:
            snapshot: the cluster now.
            moving: partitions of the run that still move.
            placing: replicas of the run that are not in their log directory yet.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        record = self._journal.record
        moves = {name: record.submitted[name] for name in moving}
        copying = copying_brokers(placing, snapshot)
        wanted = wanted_rates(moves, copying, self._rate, self._policy.log_dirs_bytes_per_s)
        missing = rates_to_set(wanted, snapshot, record)
        self._report_lowered(lowered_by_others(wanted, snapshot, record))
        self._report_unknown(frozenset(unknown_rates(wanted, snapshot)))
        theirs = self._of_others | record.rates.keys()
        self._change({name: rate for name, rate in missing.items() if name not in theirs})
        self._look_for_cleared(moves, wanted.keys() & theirs, missing, snapshot)
        # Throttles of others, which limit nothing of this run, are theirs.
        limiting = broker_roles_of(moves)
        short = [load for load in short_throttles(loads_now(snapshot)) if load.broker_role in limiting]
        if short:
            # What is advised or set is enough for the next leaders too.
            during = {load.broker_role: load for load in loads_during(snapshot, moves)}
            short = [during[load.broker_role] for load in short]
        raised: dict[BrokerRate, PlannedRate] = {
            load.broker_role: rate for load in short if (rate := self._raised_rate(load, snapshot)) is not None
        }
        for name, rate in self._change(raised).items():
            now = _rate_or_none(snapshot.rates[name].in_force)
            self._output.line(f"Raised the throttle of {rate_subject(name)} from {now} to {_rate_or_none(rate.after)}.")
        self._report([load for load in short if load.broker_role not in raised])

    def _look_for_cleared(
        self,
        moves: Mapping[TopicPartition, Submission],
        in_force: Collection[BrokerRate],
        missing: Mapping[BrokerRate, PlannedRate],
        snapshot: RunSnapshot,
    ) -> None:
        """Deal with what others have cleared, once two looks agree: a broker may not have heard of it yet."""
        now = cleared_throttle(moves, in_force, snapshot, with_lists=self._rate is not None)
        confirmed, self._cleared = now & self._cleared, now
        # What was left, and set again since, may be cleared again.
        self._left &= now
        if self._policy.if_cleared is IfCleared.LEAVE:
            confirmed, self._left = confirmed - self._left, confirmed
        if not confirmed:
            return
        if self._policy.if_cleared is IfCleared.RESTORE:
            self._restore_cleared(confirmed, missing, snapshot)
        elif self._policy.if_cleared is IfCleared.CANCEL:
            self.cleared_reason = f"others cleared the throttle: {confirmed}"
        else:
            self._output.line(
                f"Others cleared the throttle: {confirmed}. It stays cleared until the next batch (--if-cleared leave)."
            )

    def _restore_cleared(
        self, cleared: ClearedThrottle, missing: Mapping[BrokerRate, PlannedRate], snapshot: RunSnapshot
    ) -> None:
        entries: dict[ThrottledList, set[Entry]] = {}
        for name, entry in cleared.entries:
            entries.setdefault(name, set()).add(entry)
        # The lists first: a rate without them limits nothing.
        steps = _list_steps(entries, snapshot)
        self._journal.write(steps)
        try:
            if entries:
                self._control.append_entries(entries)
        except HeadroomError as error:
            # It must not end the watch of what moves. The next look tries again.
            self._output.note(f"the throttle that others cleared was not set again: {error.subject} {error.rule}")
            return
        self._journal.write([replace(step, state=StepState.DONE) for step in steps])
        done = self._change({name: missing[name] for name in cleared.rates if name in missing})
        restored = ClearedThrottle(frozenset(done), cleared.entries)
        if restored:
            self._output.line(f"Others cleared the throttle: {restored}. It was set again.")

    def _no_longer_own(self, rates: Mapping[BrokerRate, PlannedRate]) -> list[JournalStep]:
        """Return the steps that tell which own rates were cleared: they end as others left them, not as before."""
        own = self._journal.record.rates
        cleared = {
            name: PlannedRate(None, None)
            for name, rate in rates.items()
            if rate.before is None and name in own and own[name].before is not None
        }
        return _rate_steps(cleared, StepState.UNDONE)

    def _change(self, rates: Mapping[BrokerRate, PlannedRate]) -> dict[BrokerRate, PlannedRate]:
        """Set rates while partitions move, and return those that were set; the others must not end the watch."""
        if not rates:
            return {}
        self._journal.write([*self._no_longer_own(rates), *_rate_steps(rates, StepState.INTENDED)])
        failures = self._control.set_rates({name: rate.after for name, rate in rates.items()})
        done = {name: rate for name, rate in rates.items() if name.broker not in failures}
        failed = {name: rate for name, rate in rates.items() if name.broker in failures}
        self._journal.write([*_rate_steps(done, StepState.DONE), *_rate_steps(failed, StepState.FAILED)])
        for broker, reason in sorted(failures.items()):
            self._output.note(f"the throttle of broker {broker} was not set: {reason}")
        return done

    def _raised_rate(self, load: ThrottleLoad, snapshot: RunSnapshot) -> PlannedRate | None:
        """Return the rate to which the run may raise a throttle that is too low; None if it may not."""
        up_to, now = self._policy.auto_up_to_bytes_per_s, snapshot.rates[load.broker_role]
        if up_to is None or is_changed_by_others(load.broker_role, now, self._journal.record):
            return None
        wanted = min(enough_bytes_per_s([load], self._policy.throttles), up_to)
        return PlannedRate(now.own, wanted) if now.in_force is not None and wanted > now.in_force else None

    def _report_unknown(self, unknown: frozenset[BrokerRate]) -> None:
        """Name brokers that do not report their rates, once two looks agree: a single answer may be missing."""
        confirmed, self._unknown = unknown & self._unknown, unknown
        new = confirmed - self._named_unknown
        self._named_unknown = confirmed
        if new:
            names = broker_names(sorted({name.broker for name in new}))
            self._output.line(
                f"The throttle rates of {names} were not reported: until they are, partitions may move there without "
                "their throttle."
            )

    def _report_lowered(self, lowered: Mapping[BrokerRate, int]) -> None:
        """Name rates that others have lowered during the run, unless they were named with the same value."""
        new: dict[int, list[BrokerRate]] = {}
        for name, rate in lowered.items():
            if self._lowered.get(name) != rate:
                new.setdefault(rate, []).append(name)
        self._lowered = lowered
        for rate, names in sorted(new.items()):
            text = ", ".join(map(rate_subject, names))
            self._output.line(f"The rate of {text} stays at {rate_text(rate)}: others have changed it during the run.")

    def _report(self, short: Collection[ThrottleLoad]) -> None:
        reported = {(load.broker_role, load.throttle_bytes_per_s) for load in short}
        new = [load for load in short if (load.broker_role, load.throttle_bytes_per_s) not in self._reported]
        self._reported = reported
        if not new:
            return
        needed, lasting = (max(map(rate, short)) for rate in (required_bytes_per_s, lasting_required_bytes_per_s))
        later = f", and {_rate_or_none(lasting)} once dead brokers are back" if lasting > needed else ""
        enough = enough_bytes_per_s(short, self._policy.throttles)
        names = ", ".join(rate_subject(load.broker_role) for load in new)
        command = self._output.raise_command(enough, sorted({load.broker for load in short}))
        self._output.line(
            f"The throttle of {names} has become too low: it must exceed {_rate_or_none(needed)}{later}. {command}"
        )

    def release(self, snapshot: RunSnapshot) -> None:
        """Remove the own entries of partitions whose reassignment has ended.

        Raises:
            HeadroomError: a topic refused, or the journal cannot be written.
        """
        record = self._journal.record
        removed = entries_to_remove(record, snapshot)
        if not removed:
            return
        # With its topic a list is gone for good; one of a topic that was made again is of others.
        existing = {
            name: entries
            for name, entries in removed.items()
            if name.topic in snapshot.topic_ids and not record.is_remade(name.topic, snapshot.topic_ids)
        }
        if existing:
            self._control.subtract_entries(existing)
        self._journal.write(_removals(removed))

    def restore(self, snapshot: RunSnapshot) -> dict[BrokerRate, int | None]:
        """Set the rates that the run has set to what they were before, and report and return those of others that stay.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        plan = rate_restoration(self._journal.record.rates, snapshot)
        if self._journal.record.state is RunState.UNFINISHED:
            # Killed before the end, the run must not take these for rates that others have set back.
            back = {name: rate for name, rate in plan.restore.items() if rate.after is not None}
            self._journal.write(_rate_steps(back, StepState.INTENDED))
        failures = self._control.set_rates({n: r.after for n, r in plan.restore.items()}) if plan.restore else {}
        restored: dict[BrokerRate, PlannedRate] = {
            name: rate for name, rate in plan.restore.items() if name.broker not in failures
        }
        ended = {name: PlannedRate(None, self._journal.record.rates[name].before) for name in plan.ended}
        kept = {name: PlannedRate(None, now.own) for name, now in plan.kept.items()}
        self._journal.write(_rate_steps({**restored, **ended, **kept}, StepState.UNDONE))
        cleared = [name for name, rate in ended.items() if rate.after is None]
        if cleared:
            names = ", ".join(map(rate_subject, cleared))
            self._output.line(f"The rate of {names} was taken back before: the last copies may have had no throttle.")
        if len(cleared) < len(ended):
            names = ", ".join(rate_subject(name) for name in ended if name not in cleared)
            self._output.line(f"The rate of {names} was set back before the end of the run.")
        for name, now in plan.kept.items():
            self._output.line(
                f"The rate of {rate_subject(name)} stays at {_rate_or_none(now.own)}: it was changed since the run "
                "set it."
            )
        for name in plan.unreachable:
            self._output.line(
                f"The rate of {rate_subject(name)} could not be taken back: the broker is down or did not report its "
                f"rates. When it is up: {self._output.clean_command}"
            )
        for broker, reason in sorted(failures.items()):
            self._output.line(
                f"The rates of broker {broker} could not be taken back ({reason}). To try again: "
                f"{self._output.clean_command}"
            )
        listed = {TopicPartition(name.topic, e[0]) for name, own in self._journal.record.entries.items() for e in own}
        if listed:
            self._output.line(
                f"The list entries of {partitions_text(listed)} stay while others move these partitions. Afterwards: "
                f"{self._output.clean_command}"
            )
        return {name: now.own for name, now in plan.kept.items()}


def _list_steps(entries: Mapping[ThrottledList, Collection[Entry]], snapshot: RunSnapshot) -> list[JournalStep]:
    return [
        JournalStep(
            StepKind.LIST, StepState.INTENDED, str(name), snapshot.lists.get(name), format_replica_list(of_list)
        )
        for name, of_list in sorted(entries.items())
    ]


def _rate_steps(rates: Mapping[BrokerRate, PlannedRate], state: StepState) -> list[JournalStep]:
    return [
        JournalStep(StepKind.RATE, state, rate_subject(name), _text(rate.before), _text(rate.after))
        for name, rate in sorted(rates.items())
    ]


def _rate_or_none(bytes_per_s: float | None) -> str:
    return "none" if bytes_per_s is None else rate_text(bytes_per_s)


def _text(rate: int | None) -> str | None:
    return None if rate is None else str(rate)


def _removals(entries: Mapping[ThrottledList, Collection[Entry]]) -> list[JournalStep]:
    return [
        JournalStep(StepKind.LIST, StepState.UNDONE, str(name), None, format_replica_list(removed))
        for name, removed in sorted(entries.items())
    ]
