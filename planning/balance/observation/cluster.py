"""Model of an observed cluster, and the goals that are lost because something is not known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.goals.bands import LIMIT_RATIO
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import (
    NO_BROKER,
    BalanceBroker,
    BrokerCapacity,
    ClusterModel,
    PartitionArrays,
    Resource,
    cluster_model,
)
from headroom.planning.balance.observation.loads import ObservedLoads, fill_gaps, measured_writes
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState
from headroom.planning.reassignments.room.broker_room import BrokerRoom, RoomCopy
from headroom.planning.reassignments.room.checks import running_copies
from headroom.planning.reassignments.room.volumes import Volume, assumption_notes, volumes_of
from headroom.schemas.config import BalanceSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import rate_text

EXCLUDED = "excluded"
SLOW = "its log flushes are slow"
# Less is the reserve of the file system.
OWN_VOLUME_RATIO = 0.9
_EXPORT_REQUESTS = "Export them (headroom check), or use the goal leaders."
_CHECK = "Make the metrics of all brokers readable (headroom check)."


@dataclass(frozen=True)
class LostGoal:
    """A goal that is not scored, because what it compares is unknown.

    Attributes:
        name: name of the goal.
        reason: what is unknown, and why.
        remedy: what makes it known.
    """

    name: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        """Return the goal, the reason and the remedy as text."""
        return f"{self.name}: {self.reason}. {self.remedy}"


@dataclass(frozen=True, eq=False)
class ObservedCluster:
    """A cluster as it was observed. B brokers.

    Attributes:
        model: its model; loads that are unknown of all partitions are 0 there.
        unknown: resources whose loads are unknown of all partitions.
        lost_goals: built-in goals that are not scored.
        seen_ratio: share of the wanted hours that was seen of the replicas of each broker, 0 to 1, (B,); NaN without a
            history or a replica.
        notes: what the operator should know, in sentences.
    """

    model: ClusterModel
    unknown: frozenset[Resource]
    lost_goals: tuple[LostGoal, ...]
    seen_ratio: FloatArray
    notes: tuple[str, ...]

    @property
    def known_resources(self) -> list[Resource]:
        """Return the resources whose loads are known of some partition."""
        return [resource for resource in Resource if resource not in self.unknown]

    def known_goals(self, goals: Sequence[BalanceGoal], demanded: Collection[str] = ()) -> tuple[BalanceGoal, ...]:
        """Return the goals that can be scored, in their order.

        Raises:
            HeadroomError: a demanded goal is lost, or no soft goal is left.
        """
        lost = {goal.name: goal for goal in self.lost_goals}
        for name in demanded:
            if name in lost:
                raise HeadroomError(f"goal {name}", lost[name].reason, lost[name].remedy)
        known_goals = tuple(goal for goal in goals if goal.name not in lost)
        if all(goal.hard for goal in known_goals):
            raise HeadroomError("goals", "none is left that can be scored", _CHECK)
        return known_goals


def observed_cluster(state: ClusterState, loads: ObservedLoads, settings: BalanceSettings) -> ObservedCluster:
    """Return the model of a cluster, and what is not known of it.

    Raises:
        HeadroomError: the state has no partition, or a load is negative or infinite.
    """
    if not state.partitions:
        raise HeadroomError("partitions", "there are none", "Choose a cluster that has topics.")
    arrays = _arrays(state, loads)
    silent = _without_requests(state, loads, arrays)
    unknown = frozenset({*_unknown(arrays), *([Resource.REQUESTS] if silent else [])})
    # A load that is unknown everywhere takes its goals with it, and must not exclude every partition from the others.
    hours = arrays.write.shape
    rates = replace(
        arrays,
        read=np.zeros(hours) if Resource.NETWORK_OUT in unknown else arrays.read,
        requests=np.zeros(hours) if Resource.REQUESTS in unknown else arrays.requests,
    )
    unknown_brokers = _unread(state, loads) | _without_writes(arrays)
    running, _ = running_copies(state)
    stored_bytes = _stored_bytes(state, arrays)
    brokers = [
        _broker(broker, stored_bytes[broker.broker], loads, unknown_brokers, settings, running.get(broker.broker, ()))
        for broker in state.brokers.values()
    ]
    model = cluster_model(brokers, rates, settings.percentile)
    return ObservedCluster(
        model,
        unknown,
        tuple(_lost_goals(model, unknown, silent)),
        _seen_ratio(state, loads, model),
        tuple(_notes(model, state, loads)),
    )


def sparing(observed: ObservedCluster, advice: SlowAdvice) -> ObservedCluster:
    """Return the cluster with slow brokers that take nothing and give leaders or replicas away, and a note for each."""
    states = tuple(
        replace(b, takes=b.takes or SLOW, sheds=advice.sheds(b.broker)) if b.broker in advice.take_nothing else b
        for b in observed.model.brokers
    )
    notes = (
        f"Broker {b.broker} takes nothing and gives "
        f"{'leaders and replicas' if Resource.DISK in b.sheds else 'leaders'} away: {SLOW}."
        for b in states
        if b.sheds
    )
    return replace(observed, model=replace(observed.model, brokers=states), notes=(*observed.notes, *notes))


def excluding(model: ClusterModel, brokers: Collection[int]) -> ClusterModel:
    """Return the model with brokers that give and take nothing; they still count in means.

    Raises:
        HeadroomError: a broker is unknown.
    """
    states = list(model.brokers)
    for at in map(model.index_of, brokers):
        states[at] = replace(states[at], takes=EXCLUDED, gives=EXCLUDED)
    return replace(model, brokers=tuple(states))


def _arrays(state: ClusterState, loads: ObservedLoads) -> PartitionArrays:
    partitions = list(state.partitions.values())
    slots = max(len(p.replicas) for p in partitions)
    replicas = np.full((len(partitions), slots), NO_BROKER)
    in_sync = np.zeros(replicas.shape, dtype=np.bool_)
    for row, p in enumerate(partitions):
        replicas[row, : len(p.replicas)] = p.replicas
        in_sync[row, : len(p.replicas)] = [broker in p.isr for broker in p.replicas]
    write = fill_gaps(loads.write, measured_writes(state))

    def by_hour(history: FloatArray | None, measured: FloatArray) -> FloatArray:
        return np.broadcast_to(measured, write.shape) if history is None else fill_gaps(history, measured)

    return PartitionArrays(
        topics=[p.topic for p in partitions],
        partitions=np.array([p.partition for p in partitions]),
        replicas=replicas,
        leaders=np.array([NO_BROKER if p.leader is None else p.leader for p in partitions]),
        write=write,
        read=by_hour(loads.read_by_hour, loads.read),
        requests=by_hour(loads.requests_by_hour, loads.requests),
        sizes=np.array([np.nan if p.size_bytes is None else p.size_bytes for p in partitions], dtype=np.float64),
        in_sync=in_sync,
        moving=np.array([p.moving for p in partitions]),
    )


def _unknown(arrays: PartitionArrays) -> Iterator[Resource]:
    """Yield the resources whose loads are unknown of all partitions."""
    write = np.isfinite(arrays.write).any()
    if not write:
        yield Resource.NETWORK_IN
    if not write or not np.isfinite(arrays.read).any():
        yield Resource.NETWORK_OUT
    if not np.isfinite(arrays.requests).any():
        yield Resource.REQUESTS
    if not np.isfinite(arrays.sizes).any():
        yield Resource.DISK


def _without_requests(state: ClusterState, loads: ObservedLoads, arrays: PartitionArrays) -> list[int]:
    """Return the brokers that report writes of partitions that they lead, but requests of none, while others do.

    Their sources leave the requests out. If only their partitions were unknown, they could take nothing, although all
    that the other goals need is known.
    """
    measured, known = np.isfinite(measured_writes(state)), np.isfinite(loads.requests)
    leaders = np.asarray(arrays.leaders)
    reporting = set(leaders[known].tolist())
    return sorted(set(leaders[measured].tolist()) - reporting) if reporting else []


def _unread(state: ClusterState, loads: ObservedLoads) -> frozenset[int]:
    """Return the brokers whose metrics could not be read, while those of others could.

    A history does not make them known: what a broker does now may be the reason why it does not answer. If none could
    be read, no broker is special, and the loads of the history count for all.
    """
    return frozenset() if state.alive <= loads.unmeasured else loads.unmeasured


def _without_writes(arrays: PartitionArrays) -> frozenset[int]:
    """Return the brokers that lead partitions, and of which no write rate is known: their metrics are unknown.

    Without any rate at all, no broker is special.
    """
    leaders, rated = np.asarray(arrays.leaders), np.isfinite(arrays.write).any(axis=0)
    return frozenset(set(leaders.tolist()) - set(leaders[rated].tolist())) if rated.any() else frozenset()


def _stored_bytes(state: ClusterState, arrays: PartitionArrays) -> dict[int, float]:
    """Return the bytes of the replicas of each broker; NaN if unknown of one."""
    if not state.brokers:
        return {}
    ids, replicas = np.array(sorted(state.brokers)), np.asarray(arrays.replicas)
    places = np.minimum(np.searchsorted(ids, replicas), len(ids) - 1)
    # What is on no broker of the state is refused by the model.
    here = ids[places] == replicas
    sizes = np.broadcast_to(np.asarray(arrays.sizes)[:, None], replicas.shape)
    total = np.bincount(places[here], weights=sizes[here], minlength=len(ids))
    return dict(zip(ids.tolist(), total.tolist(), strict=True))


def _broker(
    state: BrokerState,
    stored_bytes: float,
    loads: ObservedLoads,
    unknown_brokers: Collection[int],
    settings: BalanceSettings,
    running: Collection[RoomCopy],
) -> BalanceBroker:
    running_bytes = sum(copy.size_bytes for copy in running)
    capacity = BrokerCapacity(
        settings.network_in_capacity,
        settings.network_out_capacity,
        _disk_bytes(state, stored_bytes, running_bytes),
        settings.replica_capacity,
        _volumes_free_bytes(state, running),
    )
    return BalanceBroker(
        state.broker,
        state.rack,
        capacity,
        state.alive,
        state.broker not in unknown_brokers,
        _takes(state, running_bytes),
        follower_reads_bytes_per_s=loads.follower_reads.get(state.broker, 0.0),
    )


def _disk_bytes(state: BrokerState, stored_bytes: float, running_bytes: float) -> float | None:
    """Return what the log directories that are online can hold of Kafka's logs; None if unknown.

    It is the total, or, if other files take more than a tenth of the volumes, its replicas and the free bytes. Less is
    the reserve of the file system, and differs from broker to broker although their disks are alike. What cordoned
    directories have free is no room.

    Args:
        state: the broker.
        stored_bytes: bytes of its replicas, those that are being copied included; NaN if unknown.
        running_bytes: bytes of these that running moves still copy: they are free now, and will not be.
    """
    total, now_free = _total_and_free(volumes_of(d for d in state.log_dirs if not d.offline))
    free = now_free - running_bytes
    if not total > 0 or np.isnan(stored_bytes + free):
        return total if total > 0 else None
    capacity = total if stored_bytes + free >= OWN_VOLUME_RATIO * total else stored_bytes + free
    spare = _spare_bytes(state, running_bytes) if any(directory.cordoned for directory in state.log_dirs) else 0.0
    return min(capacity, (stored_bytes + spare) / LIMIT_RATIO) if spare > 0 else capacity


def _spare_bytes(state: BrokerState, running_bytes: float) -> float:
    """Return what a broker with cordoned log directories may take into its others; NaN if unknown.

    What leaves a cordoned directory makes no room in the others. So they keep as much free as cordoned ones use, and at
    least what the limit demands.
    """
    taking = _taking_volumes(state)
    paths = {path for volume in taking for path in volume.paths}
    online = volumes_of(directory for directory in state.log_dirs if not directory.offline)
    cordoned_total, cordoned_free = _total_and_free([v for v in online if not paths.intersection(v.paths)])
    total, free = _total_and_free(taking)
    return free - running_bytes - float(np.maximum(cordoned_total - cordoned_free, total - LIMIT_RATIO * total))


def _total_and_free(volumes: Sequence[Volume]) -> tuple[float, float]:
    """Return the total and the free bytes of volumes; NaN if unknown of one."""
    sizes = np.array([(volume.total_bytes, volume.usable_bytes) for volume in volumes], dtype=np.float64).reshape(-1, 2)
    return float(sizes[:, 0].sum()), float(sizes[:, 1].sum())


def _taking_volumes(state: BrokerState) -> list[Volume]:
    """Return the volumes of the log directories that take replicas."""
    return volumes_of(directory for directory in state.log_dirs if not (directory.offline or directory.cordoned))


def _volumes_free_bytes(state: BrokerState, running: Collection[RoomCopy]) -> tuple[float, ...] | None:
    """Return what is free on each volume that takes replicas, beside what running moves copy there; None if unknown.

    A copy without a directory yet may come to any of them.
    """
    volumes = _taking_volumes(state)
    if not volumes or any(volume.usable_bytes is None for volume in volumes):
        return None
    return tuple(float(left) for left in BrokerRoom(state, running).least_left_by_path().values())


def _takes(state: BrokerState, running_bytes: float) -> str:
    """Return why a broker takes no replicas; empty if it may."""
    if any(directory.offline for directory in state.log_dirs):
        return "a log directory is offline"
    if any(directory.cordoned for directory in state.log_dirs) and not _spare_bytes(state, running_bytes) > 0:
        return "cordoned"
    return ""


def _lost_goals(model: ClusterModel, unknown: Collection[Resource], silent: Sequence[int]) -> Iterator[LostGoal]:
    """Yield the goals that are lost; ``silent`` are the brokers that report no requests although others do."""
    named = ", ".join(map(str, silent))
    requests = (
        f"no requests by topic are reported by broker {named}" if silent else "no broker reports requests by topic"
    )
    for resource, reason, remedy in (
        (Resource.NETWORK_IN, "write rates are unknown", _CHECK),
        (Resource.NETWORK_OUT, "read rates of consumers, or write rates, are unknown", _CHECK),
        (Resource.REQUESTS, requests, _EXPORT_REQUESTS),
        (Resource.DISK, "sizes are unknown", "Let this user describe log directories (DESCRIBE on the cluster)."),
    ):
        if resource in unknown:
            yield LostGoal(resource.name.lower(), reason, remedy)
    for resource, name, remedy in (
        (Resource.DISK, "disk_capacity", "Let this user describe log directories (Kafka 3.3 or newer)."),
        (Resource.NETWORK_IN, "network_in_capacity", "Set balance.network_in_capacity."),
        (Resource.NETWORK_OUT, "network_out_capacity", "Set balance.network_out_capacity."),
        (Resource.REPLICAS, "replica_capacity", "Set balance.replica_capacity."),
    ):
        if np.isnan(model.capacities(resource)).all():
            yield LostGoal(name, "no broker's capacity is known, so it limits nothing", remedy)
        elif resource in unknown:
            yield LostGoal(name, "the loads are unknown", _CHECK)


def _seen_ratio(state: ClusterState, loads: ObservedLoads, model: ClusterModel) -> FloatArray:
    """Return the share of the wanted hours that was seen of each broker's replicas, (B,)."""
    ids = [b.broker for b in model.brokers]
    if not loads.hours_ms:
        return np.full(len(ids), np.nan)
    own = np.isfinite(loads.write).sum(axis=0) / max(loads.wanted_hours, len(loads.hours_ms))
    total, count = dict.fromkeys(ids, 0.0), dict.fromkeys(ids, 0)
    for ratio, p in zip(own.tolist(), state.partitions.values(), strict=True):
        for broker in p.replicas:
            total[broker] += ratio
            count[broker] += 1
    return np.array([total[b] / count[b] if count[b] else np.nan for b in ids])


def _notes(model: ClusterModel, state: ClusterState, loads: ObservedLoads) -> Iterator[str]:
    if loads.hours_ms and len(loads.hours_ms) < loads.wanted_hours:
        hours = f"{len(loads.hours_ms)} hour{'s' * (len(loads.hours_ms) > 1)}"
        yield f"The history has {hours} of the {loads.wanted_hours} of balance.history: later peaks may be missing."
    if not loads.hours_ms:
        yield "Loads are those of one reading, and not the peaks of a day."
    if loads.read_by_hour is not None:
        yield (
            "Brokers count reads by topic. Those of an hour are divided among partitions by what was written to them, "
            "and among leaders by what each sends now."
        )
    if loads.follower_reads:
        named = ", ".join(map(str, sorted(loads.follower_reads)))
        total = rate_text(sum(loads.follower_reads.values()))
        yield (
            f"Consumers read {total} from broker {named} as the closest replica, of topics that it does not lead. This "
            "is assumed to stay there, whatever moves or grows."
        )
    yield from _rack_notes(model)
    for broker in model.brokers:
        if not broker.alive:
            yield f"Broker {broker.broker} is down: it gives and takes nothing, and counts in no mean."
        elif not broker.known:
            yield f"Metrics of broker {broker.broker} are unknown: it gives and takes nothing, and counts in no mean."
        elif broker.takes:
            yield f"Broker {broker.broker} takes nothing: {broker.takes}."
    yield from _unknown_load_notes(model)
    yield from _capacity_notes(model)
    yield from assumption_notes(state.brokers.values())
    yield from _size_notes(model)
    if not np.nan_to_num(model.write).any() and not np.nan_to_num(model.size).any():
        yield "All loads are 0: only leaders and replicas can be balanced."


def _unknown_load_notes(model: ClusterModel) -> Iterator[str]:
    """Yield how many partitions have an unknown load, and what the brokers with a replica of them do not take."""
    partly = model.is_counted & model.has_unknown_replicas
    if not partly.any():
        return
    first = model.name(int(np.flatnonzero(~model.load_known)[0]))
    count = int((~model.load_known).sum())
    note = f"The rates or the size of {count:,} partition{'s' * (count > 1)} are unknown, such as {first}."
    if nothing := _broker_list(model, partly & model.has_unknown_rates):
        note += f" Brokers with a replica of them take nothing: {nothing}."
    if leads := _broker_list(model, partly & model.may_lead):
        note += f" Where only sizes are unknown, brokers take leads and no replicas: {leads}."
    yield note


def _rack_notes(model: ClusterModel) -> Iterator[str]:
    if not model.racks:
        yield "No broker has a rack, so replicas are not kept apart by racks."
        return
    without = _broker_list(model, model.is_counted & (model.rack < 0))
    if without:
        yield f"Some brokers have no rack and take no replicas, because their replicas may share any rack: {without}."
    most = int(model.followers.max(initial=0)) + 1
    if model.racks < most:
        yield f"There are {model.racks} racks for up to {most} replicas: replicas are as even over racks as possible."


def _capacity_notes(model: ClusterModel) -> Iterator[str]:
    for resource, name in ((Resource.DISK, "disk"), (Resource.NETWORK_IN, "network in")):
        unknown = model.is_counted & np.isnan(model.capacities(resource))
        if unknown.any() and not unknown[model.is_counted].all():
            brokers = _broker_list(model, unknown)
            yield f"The {name} capacity of some brokers is missing or 0 and limits nothing there: {brokers}."


def _size_notes(model: ClusterModel) -> Iterator[str]:
    """Yield the partitions that fit in no log directory of a broker that takes replicas."""
    if not model.may_take.any():
        return
    disks = np.nan_to_num([(broker.capacity.disk_bytes or 0.0) * LIMIT_RATIO for broker in model.brokers])
    single = np.array([len(broker.capacity.volumes_free_bytes or ()) == 1 for broker in model.brokers], dtype=np.bool_)
    # What leaves a single volume makes room on it.
    largest = np.maximum(model.largest_free, np.where(single, disks, 0.0))[model.may_take].max()
    too_large = np.flatnonzero(np.nan_to_num(model.size) > largest)
    if len(too_large):
        more = f" and {len(too_large) - 1:,} more" if len(too_large) > 1 else ""
        yield f"{model.name(int(too_large[0]))}{more}: larger than the free bytes of any log directory, so not moved."


def _broker_list(model: ClusterModel, which: BoolArray) -> str:
    return ", ".join(str(b.broker) for b, named in zip(model.brokers, which, strict=True) if named)
