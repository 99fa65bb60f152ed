"""The batches of a written proposal, one after another: which is next, and whether what is left is still worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.score import chosen_goals
from headroom.operations.balance.written_proposal import WrittenProposal, current_partitions
from headroom.operations.journal.session import RunSession
from headroom.planning.balance.reports.progress import proposal_progress
from headroom.planning.balance.reports.rest import RestOfProposal, rest_of_proposal
from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

COMMAND = "balance run"
_PROPOSE_AGAIN = "Propose again: headroom balance propose."


@dataclass(frozen=True)
class NextBatch:
    """The batch that is carried out next.

    Attributes:
        number: its number, from 1.
        begun: whether a run of it was interrupted.
        left: numbers of all batches that are left.
    """

    number: int
    begun: bool
    left: tuple[int, ...]


def next_batch(proposal: WrittenProposal, settings: Settings, folder: Path) -> NextBatch | None:
    """Return the next batch; None if all are done. One whose run was interrupted comes first.

    Raises:
        HeadroomError: the proposal is older than the assignment, or something else moves its partitions.
    """
    progress = proposal_progress(proposal.batches, current_partitions(settings), str(folder))
    unfinished = {r.fingerprint for r in RunSession(settings, COMMAND).records if r.state is RunState.UNFINISHED}
    begun = [n for n, fingerprint in enumerate(proposal.fingerprints, start=1) if fingerprint in unfinished]
    if begun:
        return NextBatch(begun[0], True, progress.left)
    if progress.moving:
        rule = "is being reassigned, and not by a run of this proposal"
        raise HeadroomError(str(progress.moving[0]), rule, "Wait until that has ended: headroom reassignments.")
    return None if progress.next_batch is None else NextBatch(progress.next_batch, False, progress.left)


def weigh_rest(
    proposal: WrittenProposal, following: NextBatch, folder: Path, cluster: BalanceCluster
) -> RestOfProposal:
    """Return what all batches that are left gain together.

    Args:
        proposal: the proposal.
        following: the next batch.
        folder: folder of the proposal.
        cluster: the running cluster.

    Raises:
        HeadroomError: they are not to be carried out.
    """
    goals = chosen_goals(cluster, proposal.goals)
    plans = [proposal.batches[number - 1].plan for number in following.left]
    rest = rest_of_proposal(cluster.observed.model, goals, plans)
    subject = f"{folder}, batch {following.number}"
    if rest.gone:
        raise HeadroomError(subject, f"needs brokers that are gone: {_ids(rest.gone)}", f"Start them. {_PROPOSE_AGAIN}")
    if rest.unknown:
        rule = f"changes brokers whose metrics are unknown or stale: {_ids(rest.unknown)}"
        raise HeadroomError(subject, rule, "See why: headroom check. Then run the same command again.")
    if not rest.gains:
        outside = f"{rest.outside_before:.3f} now, {rest.outside_after:.3f} after all that is left"
        rule = f"gains nothing any more: load outside of bands, in shares of the means, is {outside}"
        raise HeadroomError(subject, rule, f"Leave the rest. {_PROPOSE_AGAIN}")
    return rest


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
