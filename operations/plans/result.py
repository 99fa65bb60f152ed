"""What ``headroom plan`` found, as data; text_view.py and json_view.py print it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headroom.planning.log_dirs.duration import DirectoryEstimate
from headroom.planning.reassignments.batches.batching import BatchedPlan
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.estimate import MoveEstimate
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.validation import AwaitedBroker, awaited_brokers, awaiting_leader
from headroom.planning.throttles.recommendation import ACCURATE_BYTES_PER_S, ThrottlePolicy
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import rate_text, size_text

_NAMED = 5


@dataclass(frozen=True)
class FittingWay:
    """A way in which a plan fits that does not fit as it was asked for.

    Attributes:
        throttle_bytes_per_s: throttle.
        batches: number of batches that copy.
        finish_s: time of all of them, seconds.
    """

    throttle_bytes_per_s: int
    batches: int
    finish_s: float


@dataclass(frozen=True)
class PlanResult:
    """Result of the command.

    Attributes:
        plan: the plan.
        batches: the plan in batches, in order.
        state: the cluster.
        policy: margin, deadline and capacity.
        estimate: estimate of the whole plan.
        notes: what the operator should know of the plan, each as a sentence.
        in_flight: whether the plan is what runs now.
        made: whether the plan was made for a request, and not read.
        cut: batches with their throttles and times; None if the plan is not cut.
        directories: moves between log directories, by broker.
        would_fit: how it would fit, if it does not; None if it does, or if no way is known.
    """

    plan: ReassignmentPlan
    batches: Sequence[ReassignmentPlan]
    state: ClusterState
    policy: ThrottlePolicy
    estimate: MoveEstimate
    notes: Sequence[str]
    in_flight: bool
    made: bool = False
    cut: BatchedPlan | None = None
    directories: Sequence[DirectoryEstimate] = ()
    would_fit: FittingWay | None = None

    @cached_property
    def fits(self) -> bool | None:
        """Whether the plan, in its batches if it is cut, ends within the limits that were given; None if unknown."""
        if self.waits_for_dead:
            return False
        fits = self.fits_in_one if self.cut is None else self._fits_in_batches(self.cut)
        return None if fits and (self.awaited_brokers or self.awaiting_leader) else fits

    @property
    def waits_for_dead(self) -> bool:
        """Whether the move certainly ends only when a broker is back that is down."""
        return any(awaited.is_certain for awaited in self.awaited_brokers)

    @property
    def fits_in_one(self) -> bool | None:
        """The same of the whole plan as one batch, apart from replicas on brokers that are down."""
        estimate, time = self.estimate, self.estimate.time
        if not estimate.changes.gaining:
            return True
        if estimate.throttle_bytes_per_s is None:
            return None if estimate.recommendation is None or estimate.recommendation.unknown else False
        if estimate.is_enough is False:
            return False
        if time is not None and time.known and (time.finish is None or self.misses_deadline):
            return False
        return None if estimate.is_enough is None or time is None or not time.known else True

    @property
    def misses_deadline(self) -> bool:
        """Whether the whole plan, as one batch, ends only after the deadline."""
        time, within_s = self.estimate.time, self.policy.finish_within_s
        return within_s is not None and time is not None and time.finish is not None and time.finish.middle_s > within_s

    @staticmethod
    def _fits_in_batches(cut: BatchedPlan) -> bool | None:
        return None if cut.chosen.total_s is None else cut.chosen.fits

    @cached_property
    def awaited_brokers(self) -> tuple[AwaitedBroker, ...]:
        """The brokers that are down and that moves of the plan wait for."""
        return awaited_brokers(self.plan, self.state)

    @cached_property
    def awaiting_leader(self) -> tuple[TopicPartition, ...]:
        """The partitions whose new replicas wait for the leader's next record or upload to remote storage."""
        return awaiting_leader(self.plan, self.state)

    def warnings(self) -> list[str]:
        """Return what the operator should know, the most important first."""
        return [
            *self._throttle_warnings(),
            *self._unknown_warnings(),
            *self._directory_warnings(),
            *self._tiered_notes(),
            *self.notes,
        ]

    def _tiered_notes(self) -> list[str]:
        """Return how much of the moving logs is in remote storage, so that new replicas do not copy it."""
        tiered = [p for p in self.estimate.changes.placements if p.untiered_bytes is not None and p.size_bytes]
        if not tiered:
            return []
        whole, left = sum(p.size_bytes or 0 for p in tiered), sum(p.untiered_bytes or 0 for p in tiered)
        return [
            f"Of {size_text(whole)} on the leaders' disks ({len(tiered):,} partition{'s' * (len(tiered) != 1)}), new "
            f"replicas copy only the {size_text(left)} that are not in remote storage "
            "(follower.fetch.last.tiered.offset.enable)."
        ]

    def _directory_warnings(self) -> list[str]:
        free = [str(moves.broker) for moves in self.directories if moves.rate_bytes_per_s is None]
        if not free:
            return []
        return [
            f"No throttle limits moves between log directories on brokers {', '.join(free[:_NAMED])}"
            f"{' and more' * (len(free) > _NAMED)}: they copy as fast as the disks allow (--log-dirs-throttle)."
        ]

    def _throttle_warnings(self) -> list[str]:
        warnings = []
        estimate, throttle = self.estimate, self.estimate.throttle_bytes_per_s
        recommendation = estimate.recommendation
        if throttle is not None and throttle < ACCURATE_BYTES_PER_S:
            warnings.append(f"Kafka does not keep a throttle below {rate_text(ACCURATE_BYTES_PER_S)} accurately.")
        if throttle is not None and self.policy.most_bytes_per_s < throttle:
            warnings.append(
                f"The throttle exceeds cluster.replication_capacity ({rate_text(self.policy.most_bytes_per_s)}); the "
                "time assumes no more than that."
            )
        if recommendation is not None and recommendation.misses_deadline:
            warnings.append("No throttle within cluster.replication_capacity meets --finish-within. Move in batches.")
        if recommendation is not None and recommendation.below_margin:
            warnings.append(
                f"cluster.replication_capacity leaves less than the margin of {self.policy.margin_ratio:g} above the "
                "required rate: a rise of the write rate makes the throttle too low."
            )
        if self.in_flight and not any(n.copies for n in estimate.needs) and estimate.copied_bytes != 0:
            warnings.append("No throttle limits the copies that run: their time depends on network and disks alone.")
        return warnings

    def _unknown_warnings(self) -> list[str]:
        warnings = []
        estimate = self.estimate
        if estimate.unknown_rates:
            warnings.append(
                f"The write rate of {len(estimate.unknown_rates)} copying partitions is unknown, such as "
                f"{estimate.unknown_rates[0]}: no throttle is recommended, the time is unknown, and what is required "
                "is at least what is shown. Make the metrics of all brokers readable (headroom check)."
            )
        if estimate.unknown_sizes:
            warnings.append(
                f"The size of {len(estimate.unknown_sizes)} copying partitions is unknown, such as "
                f"{estimate.unknown_sizes[0]}: the time is unknown, and room on disks was not checked for them. Let "
                "this user describe log directories (DESCRIBE on the cluster)."
            )
        if estimate.usual_rule_bytes_per_s is None:
            warnings.append(
                "Some write rates in the cluster are unknown, and so is the highest write rate of a broker."
            )
        return warnings
