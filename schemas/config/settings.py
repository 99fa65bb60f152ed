"""All sections of ``headroom.toml``. Each section's module alone defines its defaults, units and meanings."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.schemas.config.alerts import AlertSettings
from headroom.schemas.config.balance import BalanceSettings
from headroom.schemas.config.collect import CollectSettings
from headroom.schemas.config.elections import ElectionSettings
from headroom.schemas.config.kafka import ClusterSettings, KafkaSettings, TicksSettings
from headroom.schemas.config.migration import MigrationSettings
from headroom.schemas.config.notify import NotifySettings
from headroom.schemas.config.reassign import ReassignSettings
from headroom.schemas.config.servers import DashboardSettings, MetricsSettings
from headroom.schemas.config.spark import SparkSettings
from headroom.schemas.config.store import StoreSettings


@dataclass(frozen=True)
class Settings:
    """All sections of ``headroom.toml``."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    ticks: TicksSettings = field(default_factory=TicksSettings)
    collect: CollectSettings = field(default_factory=CollectSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    dashboard: DashboardSettings = field(default_factory=DashboardSettings)
    elections: ElectionSettings = field(default_factory=ElectionSettings)
    reassign: ReassignSettings = field(default_factory=ReassignSettings)
    balance: BalanceSettings = field(default_factory=BalanceSettings)
    migration: MigrationSettings = field(default_factory=MigrationSettings)

    def ticks_cluster(self) -> KafkaSettings:
        """Return the connection settings of the cluster with the ticks topic: its own, or the watched cluster's."""
        return self.ticks if self.ticks.bootstrap_servers.strip() else self.cluster
