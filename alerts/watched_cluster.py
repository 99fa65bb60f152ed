"""A cluster whose ticks are evaluated: its settings, and how long what is known of it stays fresh."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.alerts.recommendations.recommender import UNKNOWN_ORIGIN, Recommender
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.planning.finish.finish_time import Earlier
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.config import ClusterSettings, MigrationSettings, Settings

# The collector and Spark need this long to start, so the first tick may be this late.
START_S = 90.0
# Added to the configured limit. A broker that dies may be the controller and lead the ticks topic. The next controller
# waits another 9 s for it: ticks cannot be written for 12 s and cannot be read for 4 s more.
_FAILOVER_S = 5.0
# Leader balances are read from their gold table, so they arrive some ticks late, or after the table's idle interval. On
# a machine that is short of cores the history falls behind by minutes, and leaders that were elected stay: Kafka's own
# check looks every five minutes.
_BALANCE_S, _BALANCE_TICKS, _BALANCE_INTERVALS = 300.0, 6, 3
# Elections of an imbalanced cluster are planned at least once a minute.
_PLAN_S = 120.0
# A larger gap means delayed ticks or a clock that was set forward: it is unknown whether a condition lasted throughout.
_GAP_S = 60.0
# A gold job that stopped is restarted within minutes. After this time leader balances may not be counted any more.
_UNCOUNTED_S = 15 * 60.0
# A lost capacity is estimated this often at least, in intervals between proposals, before the estimate is stale.
_RISK_INTERVALS = 3
# Rows of broker loads are a minute apart.
_LOADS_S = 180.0
# Silver tables are written some times a minute, or after their idle interval, and gold rows of lag are read from them
# every quarter of a minute. As of leader balances, the history may fall behind by minutes.
_RECORDS_S, _RECORD_INTERVALS = 300.0, 3


@dataclass(frozen=True)
class WatchedCluster:
    """A cluster whose ticks are evaluated.

    Attributes:
        settings: settings of this cluster.
        config: configuration file as recommended commands name it; None if there is none.
    """

    settings: Settings
    config: str | None = None

    @classmethod
    def without_settings(cls, settings: Settings, name: str) -> WatchedCluster:
        """Return a cluster of which only ticks are known, with placeholders in recommended commands.

        Args:
            settings: settings of another cluster, for everything else.
            name: name of the cluster.
        """
        unknown = ClusterSettings(name=name, bootstrap_servers=f"<bootstrap servers of {name}>")
        alerts = replace(settings.alerts, bootstrap_servers="")
        known = replace(settings, cluster=unknown, alerts=alerts, migration=MigrationSettings())
        return cls(known, f"<headroom.toml of {name}>")

    @property
    def migrates(self) -> bool:
        """Return whether topics may migrate to it: its settings name an origin."""
        return bool(self.settings.migration.origin.bootstrap_servers.strip())

    def recommender(self, earlier: Earlier = (), elections: ElectionPlanSummary | None = None) -> Recommender:
        """Return the recommender for this cluster.

        Args:
            earlier: previous ticks: age in seconds and throttle loads.
            elections: plan of preferred elections; None if there is none.
        """
        alerts, cluster = self.settings.alerts, self.settings.cluster
        policy = ThrottlePolicy(alerts.margin_ratio, alerts.finish_within, cluster.replication_capacity)
        servers = alerts.bootstrap_servers or cluster.bootstrap_servers
        origin_servers = self.settings.migration.origin.bootstrap_servers or UNKNOWN_ORIGIN
        return Recommender(policy, servers, self.config, earlier, elections, origin_servers)

    def missing_ticks_after_s(self) -> float:
        """Return how long ticks may be missing before an alert, in seconds."""
        return max(self.settings.alerts.no_data_s + _FAILOVER_S, 3 * self.settings.collect.interval_s)

    def balances_stale_after_s(self) -> float:
        """Return the age from which leader balances are stale, in seconds."""
        idle_s = self.settings.spark.gold_idle_s()
        return max(_BALANCE_S, _BALANCE_TICKS * self.settings.collect.interval_s, _BALANCE_INTERVALS * idle_s)

    def elections_stale_after_s(self) -> float:
        """Return the age from which a plan of elections is stale, in seconds."""
        return self.balances_stale_after_s() + _PLAN_S

    def loads_stale_after_s(self) -> float:
        """Return the age from which loads of brokers are stale, in seconds."""
        return max(_LOADS_S, self.balances_stale_after_s())

    def records_stale_after_s(self) -> float:
        """Return the age from which silver tables, and the replication lag made from them, are stale, in seconds."""
        spark = self.settings.spark
        # Commits are record_trigger_s apart at least, also with a shorter idle interval.
        interval_s = max(self.settings.collect.interval_s, spark.record_trigger_s, spark.record_idle_s())
        return max(_RECORDS_S, _RECORD_INTERVALS * interval_s)

    def risks_stale_after_s(self) -> float:
        """Return the age from which an estimate of lost capacity is stale, in seconds."""
        return _RISK_INTERVALS * self.settings.balance.propose_every_s

    def gap_after_s(self) -> float:
        """Return the largest gap between two ticks across which a condition counts as continuous, in seconds."""
        return max(_GAP_S, 3 * self.settings.collect.interval_s)

    def uncounted_after_s(self) -> float:
        """Return how long fresh leader balances may be missing before alerts on them are resolved, in seconds."""
        return max(_UNCOUNTED_S, 3 * self.settings.spark.gold_trigger_s, 3 * self.balances_stale_after_s())
