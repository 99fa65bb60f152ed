"""All settings, with defaults and units: one module per section."""

from schemas.config.alerts import DAYS, AlertSettings, MaintenanceWindow
from schemas.config.balance import BalanceSettings
from schemas.config.collect import CollectSettings, Source
from schemas.config.elections import ElectionSettings
from schemas.config.kafka import ClusterSettings, KafkaSettings, SecurityProtocol, TicksSettings
from schemas.config.metrics import DEFAULT_LISTEN, MetricsSettings
from schemas.config.notify import AlertmanagerSettings, NotifySettings, SlackSettings, WebhookSettings
from schemas.config.reassign import ReassignSettings
from schemas.config.settings import Settings
from schemas.config.spark import SparkSettings
from schemas.config.store import StoreSettings

__all__ = [
    "DAYS",
    "DEFAULT_LISTEN",
    "AlertSettings",
    "AlertmanagerSettings",
    "BalanceSettings",
    "ClusterSettings",
    "CollectSettings",
    "ElectionSettings",
    "KafkaSettings",
    "MaintenanceWindow",
    "MetricsSettings",
    "NotifySettings",
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
