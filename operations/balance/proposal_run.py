"""The batches of a written proposal, one after another: which is next, and whether what is left is still worth it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headroom.alerts.recommendations.commands import config_option_of
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.score import chosen_goals
from headroom.operations.balance.written_proposal import WrittenProposal, current_partitions
from headroom.operations.journal.session import RunSession
from headroom.planning.balance.reports.progress import proposal_progress
from headroom.planning.balance.reports.rest import RestOfProposal, rest_of_proposal
from headroom.planning.reassignments.plan import ReassignmentPlan, plan_part
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

COMMAND = "balance run"
_PROPOSE = "headroom balance propose"
_PROPOSE_AGAIN = f"Propose again: {_PROPOSE}."


@dataclass(frozen=True)
class NextBatch:
    """The batch that is carried out next.

    Attributes:
        number: its number, from 1.
        begun: whether a run of it was interrupted, or did not elect all leaders.
        left: all batches that are left by number, without partitions that a later batch has taken further.
    """

    number: int
    begun: bool
    left: Mapping[int, ReassignmentPlan]


class ProposalSteps(Protocol):
    """What the caller of ``run_proposal`` does in between: it waits, asks, prints, and runs a batch."""

    def may_begin(self, number: int) -> bool:
        """Return whether a batch may begin now; False after a wait, because the cluster has changed meanwhile."""

    def read_cluster(self) -> BalanceCluster:
        """Return the running cluster and its loads."""

    def on_next(self, following: NextBatch, rest: RestOfProposal | None) -> None:
        """Report the next batch, and what all that are left gain; None for one that continues."""

    def carry_out(self, number: int) -> bool:
        """Run a batch to its end, and return True; return False to change nothing, and end.

        Raises:
            HeadroomError: the batch did not reach its end.
        """

    def pause(self) -> None:
        """Wait before the next batch."""


@dataclass(frozen=True)
class ProposalRun:
    """How far a proposal was carried out.

    Attributes:
        ran: numbers of the batches that were carried out.
        following: the batch after them; None if all are done.
        rest: what the batches gained that were left before the last one that was weighed; None if none was.
    """

    ran: tuple[int, ...]
    following: NextBatch | None
    rest: RestOfProposal | None


def run_proposal(
    proposal: WrittenProposal, settings: Settings, folder: Path, steps: ProposalSteps, config: str | None
) -> ProposalRun:
    """Carry out the batches of a proposal. Before each of them the cluster is read again, and the rest is weighed.

    Args:
        proposal: the proposal.
        settings: all settings.
        folder: folder of the proposal.
        steps: what the caller does in between.
        config: settings file that recommended commands name; the default one if None.

    Raises:
        HeadroomError: the rest is not to be carried out, or a batch did not reach its end.
    """
    ran: list[int] = []
    rest: RestOfProposal | None = None
    while (following := next_batch(proposal, settings, folder)) is not None:
        _require_other(following, ran, folder, config)
        # A batch that was interrupted has begun, and its throttle is set.
        if not following.begun and not steps.may_begin(following.number):
            continue
        rest = None if following.begun else weigh_rest(proposal, following, folder, steps.read_cluster)
        steps.on_next(following, rest)
        if not steps.carry_out(following.number):
            break
        ran.append(following.number)
        if following.left.keys() - {following.number}:
            steps.pause()
    return ProposalRun(tuple(ran), following, rest)


def _require_other(following: NextBatch, ran: Sequence[int], folder: Path, config: str | None) -> None:
    """Check that the next batch is another one than the last.

    Raises:
        HeadroomError: it is the same: its partitions do not have their target replicas or leaders.
    """
    if ran and following.number == ran[-1]:
        see = f"headroom reassignments{config_option_of(config)}"
        rule = f"batch {ran[-1]} has ended, and some of its partitions do not have their target replicas or leaders"
        raise HeadroomError(str(folder), rule, f"See which: {see}. Then propose again.")


def next_batch(proposal: WrittenProposal, settings: Settings, folder: Path) -> NextBatch | None:
    """Return the next batch; None if all are done. One whose run was interrupted comes first.

    Raises:
        HeadroomError: the proposal is older than the assignment, or something else moves its partitions.
    """
    progress = proposal_progress(proposal.batches, current_partitions(settings), str(folder))
    records = RunSession(settings, COMMAND).records
    unfinished = {plan_part(record.fingerprint) for record in records if record.state is RunState.UNFINISHED}
    unelected = {plan_part(record.fingerprint) for record in records if record.elections_failed}
    begun = [n for n, fingerprint in enumerate(proposal.fingerprints, start=1) if fingerprint in unfinished]
    begun += [number for number in progress.left if proposal.fingerprints[number - 1] in unelected]
    if begun:
        return NextBatch(begun[0], True, progress.left)
    if progress.moving:
        rule = "is being reassigned, and not by a run of this proposal"
        raise HeadroomError(str(progress.moving[0]), rule, "Wait until that has ended: headroom reassignments.")
    return None if progress.next_batch is None else NextBatch(progress.next_batch, False, progress.left)


def weigh_rest(
    proposal: WrittenProposal, following: NextBatch, folder: Path, read: Callable[[], BalanceCluster]
) -> RestOfProposal:
    """Return what all batches that are left gain together.

    Args:
        proposal: the proposal.
        following: the next batch.
        folder: folder of the proposal.
        read: returns the running cluster.

    Raises:
        HeadroomError: they are not to be carried out.
    """

    def weighed() -> RestOfProposal:
        cluster = read()
        goals = chosen_goals(cluster, proposal.goals)
        return rest_of_proposal(cluster.to_change, goals, list(following.left.values()))

    rest = weighed()
    if rest.unweighed or rest.breaking:
        # A partition whose leader switches between the two readings of a rate has none, and one in the next. And a
        # burst is no load that lasts.
        rest = weighed()
    subject = f"{folder}, batch {following.number}"
    if rest.gone:
        raise HeadroomError(subject, f"needs brokers that are gone: {_ids(rest.gone)}", f"Start them. {_PROPOSE_AGAIN}")
    if rest.unknown:
        rule = f"changes brokers whose metrics are unknown or stale: {_ids(rest.unknown)}"
        raise HeadroomError(subject, rule, "See why: headroom check. Then run the same command again.")
    if rest.closed:
        named = ", ".join(f"{state.broker} ({state.takes})" for state in rest.closed)
        remedy = f"When they take load again, run the same command again. Or propose again: {_PROPOSE}."
        raise HeadroomError(subject, f"gives load to brokers that take nothing now: {named}", remedy)
    if rest.unweighed:
        rule = f"changes partitions of which a load is unknown: {partitions_text(rest.unweighed)}"
        raise HeadroomError(subject, rule, "See why: headroom check. Then run the same command again.")
    if rest.breaking:
        named = ", ".join(f"{goal} of broker {broker}" for goal, broker in rest.breaking)
        rule = f"would break limits of the cluster as it is now, or break them further: {named}"
        remedy = f"If it was for a moment, run the same command again. Otherwise propose again: {_PROPOSE}."
        raise HeadroomError(subject, rule, remedy)
    if not rest.is_worth_it:
        outside = f"{rest.outside_before:.3f} now, {rest.outside_after:.3f} after all that is left"
        rule = f"gains nothing any more: load outside of bands, in shares of the means, is {outside}"
        raise HeadroomError(subject, rule, f"Leave the rest. {_PROPOSE_AGAIN}")
    return rest


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
