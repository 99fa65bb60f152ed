"""How far the batches of a proposal are, and whether the cluster has changed in another way since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headroom.planning.elections.planner import PartitionState
from headroom.planning.reassignments.plan import ReassignmentPlan, Target
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class ProposedBatch:
    """One batch of a proposal.

    Attributes:
        plan: target replicas.
        rollback: replicas before the batch.
    """

    plan: ReassignmentPlan
    rollback: ReassignmentPlan


@dataclass(frozen=True)
class ProposalProgress:
    """How far a proposal is.

    Attributes:
        done: numbers of the batches whose partitions all have their target replicas and leaders, from 1.
        left: the other batches by number, without partitions that a later batch has taken further.
        moving: partitions of the proposal that are being reassigned.
        unled: partitions with the replicas of a batch that the first of these does not lead.
    """

    done: tuple[int, ...]
    left: Mapping[int, ReassignmentPlan]
    moving: tuple[TopicPartition, ...]
    unled: tuple[TopicPartition, ...] = ()

    @property
    def next_batch(self) -> int | None:
        """Number of the first batch that is left; None if all are done."""
        return next(iter(self.left), None)


def proposal_progress(
    batches: Sequence[ProposedBatch], current: Mapping[TopicPartition, PartitionState], subject: str
) -> ProposalProgress:
    """Return how far the batches of a proposal are; errors name it as their subject.

    Raises:
        HeadroomError: the proposal is older than the assignment: a partition has replicas that it had at no time of the
            proposal, or does not exist.
    """
    steps = _steps(batches)
    missing = sorted(name for name in steps if name not in current)
    moving = sorted(name for name in steps if name in current and current[name].moving)
    changed = sorted(n for n in steps if n in current and n not in moving and current[n].replicas not in steps[n])
    if missing or changed:
        raise _older(subject, (missing or changed)[0], len(missing) + len(changed), current)
    # A partition that moves has reached nothing yet.
    replicas = {name: current[name].replicas for name in steps if not current[name].moving}
    left: dict[int, ReassignmentPlan] = {}
    targets: set[Target] = set()
    for number, batch in reversed(list(enumerate(batches, start=1))):
        part = batch.plan.without_passed(targets, replicas)
        # A run elects the first replicas of its batch.
        if any(replicas.get(a.name) != a.replicas or current[a.name].leader != a.replicas[0] for a in part):
            left[number] = part
        targets |= batch.plan.targets
    done = tuple(number for number in range(1, len(batches) + 1) if number not in left)
    unled = sorted(n for n, r in replicas.items() if (n, r) in targets and current[n].leader != r[0])
    return ProposalProgress(done, dict(sorted(left.items())), tuple(moving), tuple(unled))


def _steps(batches: Sequence[ProposedBatch]) -> dict[TopicPartition, list[tuple[int, ...]]]:
    """Return the replicas of each partition before the proposal, and after each batch that changes them."""
    steps: dict[TopicPartition, list[tuple[int, ...]]] = {}
    for batch in batches:
        for target in batch.plan:
            before = batch.rollback.by_name[target.name].replicas
            steps.setdefault(target.name, [before]).append(target.replicas)
    return steps


def _older(
    subject: str, name: TopicPartition, count: int, current: Mapping[TopicPartition, PartitionState]
) -> HeadroomError:
    now = current.get(name)
    has = "does not exist" if now is None else f"has replicas {','.join(map(str, now.replicas))}"
    more = f", and {count - 1:,} more changed" if count > 1 else ""
    rule = f"is older than the assignment: {name} {has}, which no batch left behind{more}"
    return HeadroomError(subject, rule, "Propose again: headroom balance propose.")
