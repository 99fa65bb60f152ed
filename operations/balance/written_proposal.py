"""A proposal in a folder, and how far its batches are on the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.operations.files import read_json
from headroom.planning.balance.reports.progress import ProposedBatch
from headroom.planning.elections.planner import PartitionState
from headroom.planning.reassignments.plan import Target, parse_plan
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

PROPOSAL_FILE = "proposal.json"
_REMEDY = "Name the folder of headroom balance propose --dir."


@dataclass(frozen=True)
class WrittenProposal:
    """A proposal that was written to a folder.

    Attributes:
        proposal_id: its id.
        cluster: name of its cluster.
        batches: its batches.
        fingerprints: fingerprint of the plan of each batch.
        throttles_bytes_per_s: throttle of each batch; None if it copies nothing.
        goals: names of the goals that were asked for; None: those of the settings.
        times_s: expected time of each batch, seconds; None if it is unknown, or never ends.
    """

    proposal_id: str
    cluster: str
    batches: tuple[ProposedBatch, ...]
    fingerprints: tuple[str, ...]
    throttles_bytes_per_s: tuple[int | None, ...]
    goals: tuple[str, ...] | None
    times_s: tuple[float | None, ...] = ()

    def throttle_of(self, number: int) -> int | None:
        """Return the throttle of a batch, by its number from 1, bytes per second; None if it copies nothing."""
        return self.throttles_bytes_per_s[number - 1]

    def later_targets(self, number: int) -> frozenset[Target]:
        """Return the target replicas of all batches after one, by its number from 1."""
        return frozenset(target for batch in self.batches[number:] for target in batch.plan.targets)


def read_own_proposal(folder: Path, settings: Settings) -> WrittenProposal:
    """Return the proposal in a folder.

    Raises:
        HeadroomError: the folder has none, or it is for another cluster.
    """
    file = folder / PROPOSAL_FILE
    document = read_json(file, _REMEDY, unreadable=_REMEDY)
    try:
        proposal = _parse_proposal(document, str(file))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise HeadroomError(str(file), f"is not a proposal ({type(error).__name__}: {error})", _REMEDY) from None
    if proposal.cluster != settings.cluster.name:
        rule = f"is for cluster {proposal.cluster}, and these settings are for {settings.cluster.name}"
        raise HeadroomError(str(folder), rule, "Name the settings of that cluster with --config.")
    return proposal


def _parse_proposal(document: Any, subject: str) -> WrittenProposal:
    batches, throttle = document["batches"], _throttle(document["throttle_bytes_per_s"], subject)
    return WrittenProposal(
        str(document["proposal_id"]),
        str(document["cluster"]),
        tuple(_batch(batch, subject) for batch in batches),
        tuple(str(batch["fingerprint"]) for batch in batches),
        tuple(_throttle_of(batch, throttle, subject) if batch["copied_replicas"] else None for batch in batches),
        # Proposals of earlier versions do not name them.
        None if document.get("asked_goals") is None else tuple(map(str, document["asked_goals"])),
        tuple(None if batch.get("duration_s") is None else float(batch["duration_s"]) for batch in batches),
    )


def _throttle_of(batch: Mapping[str, Any], throttle: int | None, subject: str) -> int | None:
    """Return the throttle of a batch, which is at most that of the proposal; earlier versions have no other."""
    rate = _throttle(batch.get("run_throttle_bytes_per_s"), subject)
    return throttle if throttle is None or rate is None else min(rate, throttle)


def _throttle(value: Any, subject: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise HeadroomError(subject, "has a throttle_bytes_per_s that is not a number of bytes", _REMEDY)


def _batch(batch: Mapping[str, Any], subject: str) -> ProposedBatch:
    plan, rollback = (parse_plan(json.dumps(batch[name]), subject) for name in ("plan", "rollback"))
    if plan.by_name.keys() != rollback.by_name.keys():
        raise HeadroomError(subject, "has a batch whose plan and rollback differ in their partitions", _REMEDY)
    return ProposedBatch(plan, rollback)


def current_partitions(settings: Settings) -> Mapping[TopicPartition, PartitionState]:
    """Return all partitions of the running cluster."""
    with LiveCluster(settings) as cluster:
        return cluster.leadership().partitions
