"""Every setting of Headroom with its default and meaning: the one place where defaults stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Source(str, Enum):
    """Where a broker's metrics are read."""

    JMX = "jmx"
    JOLOKIA = "jolokia"
    PROMETHEUS = "prometheus"


# Where /metrics is found unless it is told otherwise.
DEFAULT_LISTEN = "127.0.0.1:9644"

# Where each is found unless it is told otherwise.
_PORTS = {Source.JMX: 9999, Source.JOLOKIA: 8778, Source.PROMETHEUS: 9404}


class SecurityProtocol(str, Enum):
    """How the Kafka clients of Headroom connect."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True)
class KafkaSettings:
    """How to reach one Kafka cluster.

    Attributes:
        bootstrap_servers: ``host:port`` list, separated by commas.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; None unless SASL is used.
        sasl_username: user of SASL; None unless SASL is used.
        sasl_password: the password itself: give it by ``HEADROOM_CLUSTER__SASL_PASSWORD``, not in the file.
        sasl_password_file: a file whose only content is the password; None: not used.
        ssl_cafile: PEM file of the authorities to trust; None: the system's.
        ssl_certfile: PEM file of the client's certificate; None: no client certificate.
        ssl_keyfile: PEM file of the client's key, PKCS 8; None: no client certificate.
        ssl_key_password: password of the key file; give it by the environment.
        ssl_check_hostname: whether a broker's certificate must carry its host name.
        request_timeout_ms: longest wait for one answer of a broker.
    """

    bootstrap_servers: str = ""
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_password_file: str | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    request_timeout_ms: int = 10_000


@dataclass(frozen=True)
class ClusterSettings(KafkaSettings):
    """The cluster that is watched.

    Attributes:
        name: the cluster's name in every table and alert.
        replication_capacity: most replication traffic in bytes per second that one broker can carry, in or out
            ("100MB" is understood); None: not known, and no recommendation is capped.
    """

    name: str = "kafka"
    replication_capacity: float | None = None


@dataclass(frozen=True)
class TicksSettings(KafkaSettings):
    """The topic that carries ticks from the collector to Spark.

    Attributes:
        bootstrap_servers: of the cluster that holds the topic; empty: the watched cluster, with its security.
        topic: name of the topic.
        partitions: partitions when the topic is created; partition 0 is the alert lane, the others carry history.
        replication_factor: replicas when the topic is created; 0: the lesser of 3 and the number of brokers.
        retention_ms: how long the topic keeps ticks, when it is created.
    """

    topic: str = "headroom.ticks"
    partitions: int = 4
    replication_factor: int = 0
    retention_ms: int = 86_400_000


@dataclass(frozen=True)
class CollectSettings:
    """The collector.

    Attributes:
        interval_s: time from one tick to the next.
        source: where metrics come from: jmx (RMI, nothing to install on brokers), jolokia (its agent; cheapest for
            large brokers) or prometheus (jmx_exporter).
        port: port of the metrics of brokers that have no entry in ``endpoints``; None: 9999 for jmx, 8778 for
            jolokia, 9404 for prometheus.
        endpoints: broker id to ``host:port`` of its metrics; a broker without one is asked at its advertised host
            and ``port``.
        rate_window_s: least time over which rates are taken; 0: the greater of 10 s and 5 intervals.
        broker_timeout_s: longest wait for one broker in a tick; 0: 0.8 of the interval, at most 10 s.
        topic_config_max_age_s: a topic's throttled replica lists are read again at least this often; topics that
            move, or had lists when last read, are read every tick.
        metadata_max_age_s: leaders and in-sync replicas are read again at least this often. Up to 5,000 partitions are
            read every tick; of more, every tick those of topics that move, have lists, or changed or seem to have
            changed just now, and the others in turn; 0: as soon as time allows.
        jmx_username: user of JMX; None: no authentication.
        jmx_password: its password; give it by ``HEADROOM_COLLECT__JMX_PASSWORD``.
        jmx_password_file: a file whose only content is that password; None: not used.
        jmx_ssl: whether JMX speaks TLS.
        jmx_truststore: Java trust store (PKCS 12 or JKS) with the authority of the brokers' JMX; None: Java's own.
        jmx_truststore_password: its password; give it by the environment.
        http_path: path of jolokia or prometheus on the broker; empty: ``/jolokia/`` or ``/metrics``.
        http_username: user of jolokia or prometheus; None: no user.
        http_password: its password; give it by ``HEADROOM_COLLECT__HTTP_PASSWORD``.
        http_password_file: a file whose only content is that password; None: not used.
        http_token: bearer token in place of a user; give it by ``HEADROOM_COLLECT__HTTP_TOKEN``.
        http_token_file: a file whose only content is that token; None: not used.
        http_ssl: whether jolokia or prometheus speaks TLS.
        http_cafile: PEM file of the authorities to trust; None: the system's.
        http_certfile: PEM file of the client's certificate; None: no client certificate.
        http_keyfile: PEM file of the client's key; None: no client certificate.
        http_key_password: password of the key file; give it by the environment.
        http_check_hostname: whether a broker's certificate must carry its host name.
    """

    interval_s: float = 5.0
    source: Source = Source.JMX
    port: int | None = None
    endpoints: dict[str, str] = field(default_factory=dict)
    rate_window_s: float = 0.0
    broker_timeout_s: float = 0.0
    topic_config_max_age_s: float = 30.0
    metadata_max_age_s: float = 60.0
    jmx_username: str | None = None
    jmx_password: str | None = field(default=None, repr=False)
    jmx_password_file: str | None = None
    jmx_ssl: bool = False
    jmx_truststore: str | None = None
    jmx_truststore_password: str | None = field(default=None, repr=False)
    http_path: str = ""
    http_username: str | None = None
    http_password: str | None = field(default=None, repr=False)
    http_password_file: str | None = None
    http_token: str | None = field(default=None, repr=False)
    http_token_file: str | None = None
    http_ssl: bool = False
    http_cafile: str | None = None
    http_certfile: str | None = None
    http_keyfile: str | None = None
    http_key_password: str | None = field(default=None, repr=False)
    http_check_hostname: bool = True

    def metrics_port(self) -> int:
        """Return the port that is asked where ``endpoints`` names none."""
        return self.port or _PORTS[self.source]

    def window_s(self) -> float:
        """Return the rate window in seconds that is in force."""
        return self.rate_window_s or max(10.0, 5 * self.interval_s)

    def timeout_s(self) -> float:
        """Return the longest wait for one broker in seconds that is in force."""
        return self.broker_timeout_s or min(10.0, 0.8 * self.interval_s)


@dataclass(frozen=True)
class StoreSettings:
    """Where the Delta tables are.

    Attributes:
        path: folder or Hadoop file system URL of all tables.
        checkpoint_path: folder or URL of the streaming checkpoints; empty: ``_checkpoints`` under ``path``.
        bronze_keep_days: days of the bronze tables that are kept; 0: all.
        silver_keep_days: days of the silver tables that are kept; 0: all.
        gold_keep_days: days of the gold tables that are kept; 0: all.
        maintain_every_s: time from one maintenance of the tables by the record job to the next; 0: it does none.
    """

    path: str = "headroom-data"
    checkpoint_path: str = ""
    bronze_keep_days: int = 3
    silver_keep_days: int = 30
    gold_keep_days: int = 90
    maintain_every_s: float = 3600.0

    def keep_days(self, table: str) -> int:
        """Return how many days of a table, named by its path, are kept; 0: all."""
        layer = table.split("/")[0]
        days = {"bronze": self.bronze_keep_days, "silver": self.silver_keep_days, "gold": self.gold_keep_days}
        return days.get(layer, 0)

    def checkpoints(self) -> str:
        """Return the folder or URL of the streaming checkpoints."""
        return self.checkpoint_path or f"{self.path.rstrip('/')}/_checkpoints"


@dataclass(frozen=True)
class SparkSettings:
    """Spark.

    Attributes:
        master: Spark master; empty: ``local[*]``. By ``spark-submit`` it is the one given there.
        driver_memory: heap of the driver when Headroom starts it.
        driver_java_options: further options of the driver's JVM when Headroom starts it, separated by spaces; for
            instance ``-XX:+HeapDumpOnOutOfMemoryError``.
        shuffle_partitions: partitions of every shuffle; the data of a tick is small.
        gold_trigger_s: least time between two commits to the gold tables.
        record_trigger_s: least time between two commits to the bronze tables; the silver ones follow each.
        jars: folder of the connector's and Delta's jars; empty: the project's own, or as ``spark-submit`` set it.
        conf: further Spark settings, which win over Headroom's; what ``spark-submit`` was given wins over both.
    """

    master: str = ""
    driver_memory: str = "1g"
    driver_java_options: str = ""
    shuffle_partitions: int = 2
    gold_trigger_s: float = 5.0
    record_trigger_s: float = 30.0
    jars: str = ""
    conf: dict[str, str] = field(default_factory=dict, repr=False)


# The days of the week, as windows name them.
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class MaintenanceWindow:
    """A time that comes back every week, in which receivers are told of no alert that it covers.

    Attributes:
        days: the days on which it begins, in UTC: mon, tue, wed, thu, fri, sat, sun.
        at: when it begins, ``HH:MM`` in UTC.
        lasts: how long it lasts, in seconds ("4h" is understood), at most a week.
        clusters: names of the clusters whose alerts it covers; empty: all.
        kinds: kinds of the alerts that it covers; empty: all.
        subjects: subjects of the alerts that it covers, ``*`` standing for any text; empty: all.
    """

    days: tuple[str, ...]
    at: str
    lasts: float
    clusters: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlertSettings:
    """When alerts are raised and what they recommend.

    Attributes:
        hold_s: how long a throttle must fall short before its alert fires; a shortfall caused by a leader switch
            fires at once, for its rates are known from before.
        resolve_s: how long a throttle must be enough again before its alert resolves.
        exit_ratio: a throttle counts as enough again from ``required x exit_ratio`` on, and leaders as balanced again
            from ``threshold / exit_ratio`` down.
        stalled_s: how long an adding replica may make no progress before ``reassignment_stalled`` fires.
        no_data_s: how long a verdict may be unknown, or, and 5 s more, ticks stay away, before ``no_data`` fires.
        under_replicated_s: how long replicas that no move brings may be out of the ISR before ``under_replicated`` or
            ``isr_shrink_during_move`` fires; a restart of a broker takes less.
        left_behind_s: how long rates or throttled replica lists may stay without a reassignment before
            ``throttle_left_behind`` fires.
        leader_imbalance_percentage: ``leader_imbalance`` is about a broker that lacks the lead of more than this share
            of the partitions that prefer it, percent, though an election would give it back; 0: of any, 100: never. A
            broker's own ``leader.imbalance.per.broker.percentage`` goes before it, where it has one.
        imbalance_s: how long that must last before ``leader_imbalance`` fires, and how long preferred leaders may be
            down or out of sync before ``preferred_leader_unavailable`` does. Where brokers balance leaders by
            themselves, the former waits for two of their checks.
        slip_ratio: ``eta_slipping`` fires once the expected finish is later than it was expected first by more than
            this share of the time that was left then.
        margin_ratio: the recommended throttle is the smallest that is enough times this.
        finish_within: wished length in seconds of the rest of a move ("30m" is understood); None: no wish.
        bootstrap_servers: what stands in the commands of alerts; empty: ``cluster.bootstrap_servers``.
        maintenance: times that come back every week, in which receivers are told of no alert.
    """

    hold_s: float = 3.0
    resolve_s: float = 5.0
    exit_ratio: float = 1.05
    stalled_s: float = 30.0
    no_data_s: float = 15.0
    under_replicated_s: float = 60.0
    left_behind_s: float = 300.0
    leader_imbalance_percentage: float = 10.0
    imbalance_s: float = 600.0
    slip_ratio: float = 0.5
    margin_ratio: float = 1.2
    finish_within: float | None = None
    bootstrap_servers: str = ""
    maintenance: tuple[MaintenanceWindow, ...] = ()


@dataclass(frozen=True)
class SlackSettings:
    """Slack: one message per alert, kept up to date, with a thread of what changed.

    Attributes:
        token: bot token (``xoxb-...``, scopes chat:write and channels:history, in a private channel groups:history);
            give it by ``HEADROOM_NOTIFY__SLACK__TOKEN``. With ``channel``, it turns Slack on.
        token_file: a file whose only content is that token; None: not used.
        channel: id of the channel, such as ``C0123456789``; it stands at the end of the channel's details.
        webhook_url: an incoming webhook in place of a token: every event is a message of its own; give it by
            ``HEADROOM_NOTIFY__SLACK__WEBHOOK_URL``.
        webhook_url_file: a file whose only content is that URL; None: not used.
        api_url: Slack's API.
        timeout_s: longest time for one request and its whole answer.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    channel: str = ""
    webhook_url: str | None = field(default=None, repr=False)
    webhook_url_file: str | None = None
    api_url: str = "https://slack.com/api/"
    timeout_s: float = 10.0

    def by_token(self) -> bool:
        """Return whether Slack is told by a bot."""
        return bool(self.token or self.token_file)

    def by_webhook(self) -> bool:
        """Return whether Slack is told by an incoming webhook."""
        return bool(self.webhook_url or self.webhook_url_file)


@dataclass(frozen=True)
class AlertmanagerSettings:
    """Alertmanager, by its API v2.

    Attributes:
        urls: ``http://host:port`` of every instance, separated by commas; empty: Alertmanager is not told.
        username: user of basic authentication; None: none.
        password: its password; give it by ``HEADROOM_NOTIFY__ALERTMANAGER__PASSWORD``.
        password_file: a file whose only content is that password; None: not used.
        ssl_cafile: PEM file of the authorities to trust; None: the system's.
        resend_s: a firing alert is sent again this often; one that is not for four times as long ends there by itself.
        timeout_s: longest time for one request and its whole answer.
    """

    urls: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: str | None = None
    ssl_cafile: str | None = None
    resend_s: float = 60.0
    timeout_s: float = 10.0

    def instances(self) -> list[str]:
        """Return the URL of each instance."""
        return [url.strip().rstrip("/") for url in self.urls.split(",") if url.strip()]


@dataclass(frozen=True)
class WebhookSettings:
    """A web server of yours that takes each event as JSON.

    Attributes:
        url: where events are posted to; empty: nowhere. A token in it is kept out of tables and logs.
        secret: what each post is signed with, by HMAC-SHA256; None: not signed. Give it by
            ``HEADROOM_NOTIFY__WEBHOOK__SECRET``.
        secret_file: a file whose only content is that secret; None: not used.
        ssl_cafile: PEM file of the authorities to trust; None: the system's.
        timeout_s: longest time for one request and its whole answer.
    """

    url: str = field(default="", repr=False)
    secret: str | None = field(default=None, repr=False)
    secret_file: str | None = None
    ssl_cafile: str | None = None
    timeout_s: float = 10.0


@dataclass(frozen=True)
class NotifySettings:
    """Who is told of alerts besides the terminal, and how hard it is tried.

    Attributes:
        log: whether every event goes to the process's log too.
        least_severity: info, warning or critical: they are told of alerts that are at least as grave.
        retry_s: wait after the first failed attempt; it doubles with each further one.
        retry_max_s: longest wait between two attempts.
        give_up_s: an event that could not be delivered is dropped once its alert has been resolved for this long.
        digest_after: if more alerts than this fire at once, Slack gets one message for all of them.
        dashboard_url: link to a dashboard in every message; ``{cluster}`` and ``{kind}`` are filled in; empty: none.
        runbook_url: link to a runbook in every message, filled in likewise; empty: none.
    """

    log: bool = False
    least_severity: str = "warning"
    retry_s: float = 1.0
    retry_max_s: float = 60.0
    give_up_s: float = 86_400.0
    digest_after: int = 10
    dashboard_url: str = ""
    runbook_url: str = ""
    slack: SlackSettings = field(default_factory=SlackSettings)
    alertmanager: AlertmanagerSettings = field(default_factory=AlertmanagerSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)

    def receivers(self) -> list[str]:
        """Return the names of those who are told, as ``alerts/deliveries`` calls them."""
        told = {
            "log": self.log,
            "slack": self.slack.by_token(),
            "slack_webhook": self.slack.by_webhook(),
            "alertmanager": bool(self.alertmanager.instances()),
            "webhook": bool(self.webhook.url),
        }
        return [name for name, wanted in told.items() if wanted]


@dataclass(frozen=True)
class MetricsSettings:
    """What Headroom tells of itself: /metrics for Prometheus, and /health for probes.

    Attributes:
        listen: ``host:port`` that answers; port 0: any that is free, told at the start; ``off`` or empty: none does;
            None: ``127.0.0.1:9644``, and none, with a warning, while another process has that port.
        stale_after_s: age of a cluster's last tick from which its numbers are gone from /metrics and /health is red;
            0: the greater of 30 s and 3 intervals. It holds for the first tick after the start too, which without it
            may take 90 s.
        top_n: most moving partitions of a cluster that have series of their own, those of greatest write rate x
            followers; of a leading broker 20 at most.
    """

    listen: str | None = None
    stale_after_s: float = 0.0
    top_n: int = 50

    def address(self) -> str:
        """Return the ``host:port`` that is in force; empty: none."""
        listen = DEFAULT_LISTEN if self.listen is None else self.listen.strip()
        return "" if listen == "off" else listen

    def stale_s(self, interval_s: float) -> float:
        """Return the age of a tick in seconds from which it is too old, of a cluster with this interval."""
        return self.stale_after_s or max(30.0, 3 * interval_s)

    def first_s(self, interval_s: float) -> float:
        """Return how many seconds the first tick may take: the collector and Spark have to start before it."""
        return self.stale_after_s or max(90.0, self.stale_s(interval_s))


@dataclass(frozen=True)
class ElectionSettings:
    """Elections of preferred leaders: how many at a time, and when.

    Attributes:
        batch_partitions: most partitions of one batch.
        batch_partitions_per_broker: most partitions of one batch whose lead one broker gains or gives up.
        batch_write_bytes_per_s: most that may be written to the partitions of one batch together ("20MB" is
            understood); None: no limit.
        capacity_bytes_per_s: most that producers may write to the partitions that one broker leads; None: not known,
            and no election is left out for it.
        quiet_below: elections run only while producers write less than this to the whole cluster, in bytes per second
            ("50MB" is understood), or within ``window`` if that is set too; None: at any rate.
        window: time of day in which elections run, such as "01:00-05:00" in UTC or "22:00-02:00 Europe/Berlin"; empty:
            at any time.
        settle_s: how long the leaders of a batch may take to move, and their followers to be in sync again; then no
            further batch is elected.
        pause_s: wait between two batches.
    """

    batch_partitions: int = 200
    batch_partitions_per_broker: int = 50
    batch_write_bytes_per_s: float | None = None
    capacity_bytes_per_s: float | None = None
    quiet_below: float | None = None
    window: str = ""
    settle_s: float = 60.0
    pause_s: float = 10.0


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
    elections: ElectionSettings = field(default_factory=ElectionSettings)
