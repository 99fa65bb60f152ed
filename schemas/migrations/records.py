"""Records of the topic ``headroom.migrations``: what was agreed about each partition of a migration, and by whom.

The topic is on the target cluster, has one partition and is compacted. A record's key names its subject: a partition of
the origin, or a router, which is one process that uses the routing library. Its value is one JSON object with the
``version`` of its form; a record without a value removes what the key names.

Headroom writes records of partitions in transactions, all partitions of a change in one. Each router writes its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import Any

from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.json_text import decode_text, parse_json

MIGRATIONS_TOPIC = "headroom.migrations"
# Newest version of the record form that this Headroom reads. A record has the first one of which a reader does all that
# it says: a router that knows no closed origin would agree to it, and still write there, and one that knows of no end
# offset that is opened again would agree though it has moved records behind the one before.
RECORD_VERSION = 3
_FIRST_VERSION, _CLOSED_VERSION, _REOPENED_VERSION = 1, 2, 3
# Leader epochs of a partition, the newest ones, of which it is kept how far they acknowledged records. Where each of
# them ends is asked for in every reading.
KEPT_EPOCHS = 8


class MigrationStatus(str, Enum):
    """Status of a partition in a migration, in this order.

    PLANNED: the end offset is agreed, and the target is not in use yet. MIGRATING: from the end offset on the target is
    in use. MIGRATED: the origin has reached its end. AGED: retention has passed on the origin, and it is not read.
    """

    PLANNED = "planned"
    MIGRATING = "migrating"
    MIGRATED = "migrated"
    AGED = "aged"


class MigrationMethod(str, Enum):
    """How records and readers get to the target.

    ROUTED: clients use the routing library. DRAINED: nothing is copied; producers are moved by hand. MIRRORED:
    MirrorMaker 2, or another mirror that keeps records but not offsets. LINKED: a cluster link, which keeps offsets
    too.
    """

    ROUTED = "routed"
    DRAINED = "drained"
    MIRRORED = "mirrored"
    LINKED = "linked"


STATUSES = tuple(status.value for status in MigrationStatus)
METHODS = tuple(method.value for method in MigrationMethod)
# Whether something copies what the origin has to the target.
METHODS_WITH_COPIES = (MigrationMethod.MIRRORED, MigrationMethod.LINKED)
METHODS_WITHOUT_COPIES = (MigrationMethod.ROUTED, MigrationMethod.DRAINED)


@dataclass(frozen=True)
class PartitionAgreement:
    """What was agreed about one partition.

    Attributes:
        migration: name of the migration. It has one writer.
        number: number of the agreement within the migration. A change to which routers have to agree has a higher one.
        origin_cluster_id: id of the cluster that the partition leaves.
        target_cluster_id: id of the cluster that it goes to.
        topic: name of the topic, on both clusters.
        partition: number of the partition, on both clusters.
        origin_topic_id: id of the topic on the origin; None if unknown.
        target_topic_id: id of the topic on the target; None if unknown.
        end_offset: agreed end offset on the origin, exclusive; None if unknown.
        target_base_offset: offset on the target of the first record of the migration; None until it is known.
        status: planned, migrating, migrated or aged.
        ignore_origin: whether readers give up what they have not read on the origin.
        origin_end: end of an origin's log that lost records below the end offset, exclusive; None if it lost none.
        method: routed, drained, mirrored or linked.
        routers: names of the routers that have to agree before the migration starts.
        shielded: whether nothing calls the origin for this partition, because its calls hang.
        origin_position: log end of the origin by the reading from which the end offset follows; None if there is none.
        origin_offsets_per_s: rate at which the log grew by that reading, offsets per second; None if unknown.
        origin_read_ms: time of that reading, epoch milliseconds; None if there is none.
        sealed_ms: when the origin was seen at its end, epoch milliseconds; None before, and where an earlier Headroom
            saw it.
        origin_closed: whether routers write nothing more to the origin, because its log has lost records below the end
            offset. Where it ends is known once all have agreed to that.
        reopened_end: end offset with which the target was in use, while all routers agree to a nearer one and the
            partition is planned again; None otherwise. A router that does not know the nearer one keeps to this one.
        origin_dropped: whether a run has deleted the topic on the origin, so that nothing is left there to watch.
    """

    migration: str
    number: int
    origin_cluster_id: str
    target_cluster_id: str
    topic: str
    partition: int
    origin_topic_id: str | None = None
    target_topic_id: str | None = None
    end_offset: int | None = None
    target_base_offset: int | None = None
    status: str = "planned"
    ignore_origin: bool = False
    origin_end: int | None = None
    method: str = "routed"
    routers: tuple[str, ...] = ()
    shielded: bool = False
    origin_position: int | None = None
    origin_offsets_per_s: float | None = None
    origin_read_ms: int | None = None
    sealed_ms: int | None = None
    origin_closed: bool = False
    reopened_end: int | None = None
    origin_dropped: bool = False

    @property
    def name(self) -> TopicPartition:
        """Topic and number of the partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def origin_name(self) -> tuple[str, TopicPartition]:
        """Id of the origin's cluster, and the partition: topics of two clusters may have one name."""
        return self.origin_cluster_id, self.name

    def key(self) -> bytes:
        """Return the key of the partition's record."""
        return _encode(
            {
                "kind": "partition",
                "origin_cluster_id": self.origin_cluster_id,
                "topic": self.topic,
                "partition": self.partition,
            }
        )

    def value(self) -> bytes:
        """Return the value of the partition's record."""
        version = _CLOSED_VERSION if self.origin_closed else _FIRST_VERSION
        return _encode({"version": version if self.reopened_end is None else _REOPENED_VERSION, **asdict(self)})


@dataclass(frozen=True)
class AcknowledgedEnd:
    """How far a leader had acknowledged a producer's records when the producer got to know the next leader.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        leader_epoch: epoch of that leader.
        end: offset on the origin after the last acknowledged record.
        origin_cluster_id: id of the origin's cluster; None if the id of the topic is known, which is unique, and in
            notes of earlier libraries.
        origin_topic_id: id of the topic on the origin; None before Kafka 2.8, and in notes of earlier libraries.
    """

    topic: str
    partition: int
    leader_epoch: int
    end: int
    origin_cluster_id: str | None = None
    origin_topic_id: str | None = None

    def values(self) -> dict[str, Any]:
        """Return the note as it is in the report's record. There may be thousands, so what is unknown is left out."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class RouterReport:
    """What a router reports about itself.

    Attributes:
        router: name of the router. Each running process has another one.
        instance: random id of the process; the newest one under a name is the valid one.
        role: producer or consumer.
        acks: acks of the producer on the origin: "all", "1" or "0"; None for a consumer.
        client: client library and its version.
        agreed: number of the agreement that it keeps to, by migration.
        acknowledged: what the leaders before the present ones acknowledged to it, of partitions in a migration.
        incomplete: migrations of which it has dropped some of that, because it did not fit into a record.
    """

    router: str
    instance: str
    role: str
    acks: str | None = None
    client: str = ""
    agreed: Mapping[str, int] = field(default_factory=dict)
    acknowledged: tuple[AcknowledgedEnd, ...] = ()
    incomplete: tuple[str, ...] = ()

    def key(self) -> bytes:
        """Return the key of the router's record."""
        return _encode({"kind": "router", "router": self.router})

    def value(self) -> bytes:
        """Return the value of the router's record."""
        values = asdict(replace(self, acknowledged=()))
        acknowledged = [end.values() for end in self.acknowledged]
        return _encode({"version": _FIRST_VERSION, **values, "acknowledged": acknowledged})


@dataclass(frozen=True)
class Removal:
    """A record without a value.

    Attributes:
        removes: partition of the origin with the origin's cluster id, or name of a router.
    """

    removes: tuple[str, TopicPartition] | str


MigrationRecord = PartitionAgreement | RouterReport | Removal


def read_migration_record(offset: int, key: bytes | None, value: bytes | None) -> MigrationRecord:
    """Return a record of the topic.

    Args:
        offset: its offset, for errors.
        key: its key.
        value: its value; None removes what the key names.

    Raises:
        HeadroomError: the record is not Headroom's, is of a newer version, or is not complete.
    """
    subject = f"{MIGRATIONS_TOPIC} offset {offset}"
    names = _decode(subject, key)
    kind = names.get("kind")
    if kind not in ("partition", "router"):
        raise _foreign(subject, "its key names neither a partition nor a router")
    try:
        if value is None:
            return _removal(kind, names)
        values = _decode(subject, value)
        version = values.pop("version", None)
        if not _is_whole(version):
            raise _foreign(subject, "its value has no version")
        if version > RECORD_VERSION:
            rule = f"the record has version {version}, and this Headroom reads up to version {RECORD_VERSION}"
            raise HeadroomError(subject, rule, "Update Headroom and its routing library here.")
        read = _agreement(values) if kind == "partition" else _report(values)
    except (KeyError, TypeError, ValueError) as error:
        raise _foreign(subject, f"it is not complete ({error})") from None
    if read.key() != _encode(names):
        raise _foreign(subject, "its key and its value name different subjects")
    return read


def _removal(kind: str, names: dict[str, Any]) -> Removal:
    if kind == "router":
        return Removal(_text(names["router"]))
    return Removal(
        (_text(names["origin_cluster_id"]), TopicPartition(_text(names["topic"]), _whole(names["partition"])))
    )


def _agreement(values: dict[str, Any]) -> PartitionAgreement:
    known = {name.name: values[name.name] for name in fields(PartitionAgreement) if name.name in values}
    for name in ("migration", "origin_cluster_id", "target_cluster_id", "topic"):
        _text(known[name])
    for name in ("number", "partition"):
        _whole(known[name])
    ends = ("end_offset", "target_base_offset", "origin_end", "reopened_end")
    for name in (*ends, "origin_position", "origin_read_ms", "sealed_ms"):
        if known.get(name) is not None:
            _whole(known[name])
    if known.get("origin_offsets_per_s") is not None:
        _amount(known["origin_offsets_per_s"])
    if known["status"] not in STATUSES or known["method"] not in METHODS:
        raise ValueError(f"status {known['status']!r} or method {known['method']!r} is unknown")
    # Records of earlier writers have no shield, and no origin that is closed or dropped.
    later = ((name, known.get(name, False)) for name in ("shielded", "origin_closed", "origin_dropped"))
    for name, flag in (("ignore_origin", known["ignore_origin"]), *later):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} is neither true nor false")
    return PartitionAgreement(**known | {"routers": tuple(map(_text, known["routers"]))})


def _report(values: dict[str, Any]) -> RouterReport:
    known = {name.name: values[name.name] for name in fields(RouterReport) if name.name in values}
    for name in ("router", "instance", "role"):
        _text(known[name])
    agreed = {_text(migration): _whole(number) for migration, number in known["agreed"].items()}
    ends = tuple(map(_acknowledged_end, known["acknowledged"]))
    # Reports of earlier libraries have no word of it.
    incomplete = tuple(map(_text, known.get("incomplete", ())))
    return RouterReport(**known | {"agreed": agreed, "acknowledged": ends, "incomplete": incomplete})


def _acknowledged_end(values: Mapping[str, Any]) -> AcknowledgedEnd:
    # Notes of earlier libraries have no ids.
    cluster_id, topic_id = values.get("origin_cluster_id"), values.get("origin_topic_id")
    return AcknowledgedEnd(
        _text(values["topic"]),
        _whole(values["partition"]),
        _whole(values["leader_epoch"]),
        _whole(values["end"]),
        None if cluster_id is None else _text(cluster_id),
        None if topic_id is None else _text(topic_id),
    )


def _encode(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def _decode(subject: str, encoded: bytes | None) -> dict[str, Any]:
    try:
        values = parse_json(decode_text(encoded or b""))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise _foreign(subject, "its key and value are not JSON objects")
    return values


def _foreign(subject: str, why: str) -> HeadroomError:
    return HeadroomError(
        subject,
        f"the record is not one of Headroom's: {why}",
        f"Find out who writes to {MIGRATIONS_TOPIC}, and allow only Headroom and its routers to.",
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is not text")
    return value


def _whole(value: Any) -> int:
    if not _is_whole(value):
        raise ValueError("a number is not whole, or is negative")
    number: int = value
    return number


def _amount(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError("a rate is not a number, or is negative")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
