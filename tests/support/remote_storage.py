"""Brokers with remote storage that is a folder: Kafka's own storage manager for tests keeps uploaded segments in it.

Source: Kafka 4.3.1, ``LocalTieredStorage`` and ``TieredStorageTestUtils``.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER, REMOTE_STORAGE, TOPIC
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.java import jar_folder
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition

# Smallest segment.bytes that Kafka 4 takes.
LEAST_SEGMENT_BYTES = 1 << 20
_SKIPS_UPLOADED = "follower.fetch.last.tiered.offset.enable"
_LOCAL_RETENTION, _LOCAL_RETENTION_MS = "local.retention.bytes", "local.retention.ms"
# Between two looks for segments to upload, or to delete from the disk.
_INTERVAL_MS = "500"
_TIMEOUT_S = 10.0


def remote_storage(folder: Path) -> dict[str, str]:
    """Return the settings of brokers that upload segments into one folder.

    Raises:
        HeadroomError: set-up has not fetched the storage manager.
    """
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": str(next(jar_folder("remote-storage").glob("kafka-storage-*.jar"))),
        "rsm.config.dir": str(folder),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "remote.log.manager.task.interval.ms": _INTERVAL_MS,
        "log.initial.task.delay.ms": _INTERVAL_MS,
        "log.retention.check.interval.ms": _INTERVAL_MS,
    }


def tiered_topic(segment_bytes: int, local_bytes: int) -> dict[str, str]:
    """Return the settings of a topic with remote storage.

    Args:
        segment_bytes: size of its segments.
        local_bytes: what leaders keep of uploaded segments, together with the rest of the log.
    """
    return {REMOTE_STORAGE: "true", "segment.bytes": str(segment_bytes), _LOCAL_RETENTION: str(local_bytes)}


@dataclass(frozen=True)
class TieredLog:
    """A leader's log on its disk, of a topic with remote storage.

    Attributes:
        name: its partition.
        data: log directory of the leader.
        local_bytes: as of its topic.
    """

    name: TopicPartition
    data: Path
    local_bytes: int

    def segments(self) -> dict[int, int]:
        """Return the bytes of each segment by its first offset, the active segment last."""
        found = {}
        for path in sorted((self.data / str(self.name)).glob("*.log")):
            # One that is being deleted is renamed first.
            with suppress(FileNotFoundError):
                found[int(path.stem)] = path.stat().st_size
        return found

    def is_tiered(self, admin: KafkaAdminClient) -> bool:
        """Return whether all segments but the active one are uploaded, and whatever may be deleted locally is gone."""
        last_uploaded = admin.list_partition_offsets({self.name: OffsetSpec.LATEST_TIERED})[self.name].offset
        segments = self.segments()
        if len(segments) < 2 or last_uploaded != max(segments) - 1:
            return False
        first = min(segments)
        # Kafka deletes the first segment while at least local.retention.bytes are left
        # (UnifiedLog.deleteRetentionSizeBreachedSegments).
        return first > 0 and sum(segments.values()) - segments[first] < self.local_bytes


def keep_local(settings: Settings, topic: str) -> None:
    """Let brokers delete no more local segments of a topic, so that a new replica has whatever it has copied."""
    _alter(settings, ConfigChange(TOPIC, topic, {_LOCAL_RETENTION: None, _LOCAL_RETENTION_MS: None}))


def set_skips_uploaded(settings: Settings, skips: bool) -> None:
    """Set on all brokers whether new replicas skip uploaded segments; they learn of it a moment later."""
    _alter(settings, ConfigChange(BROKER, "", {_SKIPS_UPLOADED: str(skips).lower()}))


def skips_uploaded(admin: KafkaAdminClient, broker: int) -> bool:
    """Return whether new replicas on a broker skip uploaded segments."""
    asked = ConfigResource(ConfigResourceType.BROKER, str(broker), [_SKIPS_UPLOADED])
    found = admin.describe_configs([asked], config_filter="all")["broker"][str(broker)]
    return found[_SKIPS_UPLOADED]["value"] == "true"


def _alter(settings: Settings, change: ConfigChange) -> None:
    with closing(AdminConnection(settings.cluster)) as link:
        alter_configs(link, [change], _TIMEOUT_S)
