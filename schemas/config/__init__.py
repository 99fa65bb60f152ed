"""All settings, with defaults and units: one module per section."""

from headroom.schemas.config.alerts import DAYS, AlertSettings, MaintenanceWindow
from headroom.schemas.config.balance import BalanceSettings
from headroom.schemas.config.collect import CollectSettings, Source
from headroom.schemas.config.elections import ElectionSettings
from headroom.schemas.config.kafka import ClusterSettings, KafkaSettings, LogDirVolumes, SecurityProtocol, TicksSettings
from headroom.schemas.config.migration import MigrationSettings, OriginSettings
from headroom.schemas.config.notify import AlertmanagerSettings, NotifySettings, SlackSettings, WebhookSettings
from headroom.schemas.config.reassign import ReassignSettings
from headroom.schemas.config.servers import DEFAULT_LISTEN, DashboardSettings, MetricsSettings
from headroom.schemas.config.settings import Settings
from headroom.schemas.config.spark import SparkSettings
from headroom.schemas.config.store import StoreSettings

__all__ = [
    "DAYS",
    "DEFAULT_LISTEN",
    "AlertSettings",
    "AlertmanagerSettings",
    "BalanceSettings",
    "ClusterSettings",
    "CollectSettings",
    "DashboardSettings",
    "ElectionSettings",
    "KafkaSettings",
    "LogDirVolumes",
    "MaintenanceWindow",
    "MetricsSettings",
    "MigrationSettings",
    "NotifySettings",
    "OriginSettings",
    "ReassignSettings",
    "SecurityProtocol",
    "Settings",
    "SlackSettings",
    "Source",
    "SparkSettings",
    "StoreSettings",
    "TicksSettings",
    "WebhookSettings",
]
