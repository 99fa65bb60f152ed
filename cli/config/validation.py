"""Validation of the settings beyond their types: ranges, and rules between settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter

from headroom.cli.config.notify_validation import notify_errors
from headroom.cli.config.problem import ONE_OF_TWO, SettingError, duplicate_secrets, quantity_errors
from headroom.cli.config.sources import env_name
from headroom.schemas.config import (
    AlertSettings,
    BalanceSettings,
    CollectSettings,
    DashboardSettings,
    KafkaSettings,
    SecurityProtocol,
    Settings,
    Source,
    SparkSettings,
    StoreSettings,
)
from headroom.schemas.quantities import (
    GOAL,
    GOALS,
    TOPIC,
    QuantityError,
    parse_address,
    parse_addresses,
    parse_heap_bytes,
    parse_id,
    parse_machines,
    parse_names,
    parse_window,
    strip,
)


@dataclass(frozen=True)
class Range:
    """The allowed values of a number.

    Attributes:
        minimum: smallest value allowed.
        above: whether ``minimum`` itself is excluded.
        maximum: greatest value allowed.
        bounded: whether an error names both limits, as for a port or a percentage.
    """

    minimum: float
    above: bool = False
    maximum: float = math.inf
    bounded: bool = False

    def violated_rule(self, value: float) -> str | None:
        """Return the rule that a number violates; None if it is allowed. Infinity and NaN are never allowed."""
        if not (value > self.minimum if self.above else value >= self.minimum):
            if self.bounded:
                return f"must be from {self.minimum:g} to {self.maximum:g}"
            return f"must be greater than {self.minimum:g}" if self.above else f"must be {self.minimum:g} or more"
        if value > self.maximum or value == math.inf:
            if self.bounded:
                return f"must be from {self.minimum:g} to {self.maximum:g}"
            finite = self.maximum < math.inf
            return f"must be at most {self.maximum:,}" if finite else "must be a number that is not infinite"
        return None


# Names of headers, as HTTP has them, and those whose values come from whoever asks, or are no user.
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OF_CLIENTS = (
    "accept accept-charset accept-encoding accept-language authorization cache-control connection content-encoding "
    "content-length content-type cookie date dnt expect forwarded from host if-modified-since if-none-match "
    "keep-alive last-event-id origin pragma priority range referer te transfer-encoding upgrade "
    "upgrade-insecure-requests user-agent via x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto "
    "x-real-ip x-requested-with"
)
# A year: a longer wait is a typing error, and too long for the timers of Python and of the JVM.
_MAX_WAIT_S = 366 * 86_400
# Limits of Kafka's settings that are 32-bit and 64-bit integers.
_INT, _LONG = 2**31 - 1, 2**63 - 1

POSITIVE = Range(0, above=True)
NOT_NEGATIVE = Range(0)
AT_LEAST_ONE = Range(1)
SECONDS = Range(0, above=True, maximum=_MAX_WAIT_S)
NO_SECONDS_OR_MORE = Range(0, maximum=_MAX_WAIT_S)
DAYS = Range(0, maximum=36_500)
COUNT = Range(1, maximum=_INT)
# Less than 1 kB/s is a unit that was forgotten, and more than 1 EB/s a wrong one.
TRAFFIC = Range(1_000, maximum=10**18)

RANGES: dict[tuple[str, str], Range] = {
    ("cluster", "request_timeout_ms"): Range(0, above=True, maximum=_INT),
    ("cluster", "replication_capacity"): TRAFFIC,
    ("ticks", "request_timeout_ms"): Range(0, above=True, maximum=_INT),
    ("ticks", "partitions"): Range(1, maximum=100_000),
    ("ticks", "replication_factor"): Range(0, maximum=32_767),
    ("ticks", "retention_ms"): Range(0, above=True, maximum=_LONG),
    ("collect", "interval_s"): SECONDS,
    ("collect", "port"): Range(1, maximum=65535, bounded=True),
    ("collect", "rate_window_s"): NO_SECONDS_OR_MORE,
    ("collect", "broker_timeout_s"): NO_SECONDS_OR_MORE,
    ("collect", "topic_config_max_age_s"): NO_SECONDS_OR_MORE,
    ("collect", "metadata_max_age_s"): NO_SECONDS_OR_MORE,
    ("collect", "load_interval_s"): NO_SECONDS_OR_MORE,
    ("collect", "log_dirs_interval_s"): NO_SECONDS_OR_MORE,
    ("collect", "measure_s"): Range(1, maximum=_MAX_WAIT_S),
    ("store", "bronze_keep_days"): DAYS,
    ("store", "silver_keep_days"): DAYS,
    ("store", "gold_keep_days"): DAYS,
    ("store", "partition_load_keep_days"): DAYS,
    ("store", "broker_load_keep_days"): DAYS,
    ("store", "migration_syncs_keep_days"): DAYS,
    ("store", "maintain_every_s"): NO_SECONDS_OR_MORE,
    ("spark", "shuffle_partitions"): Range(1, maximum=100_000),
    ("spark", "gold_trigger_s"): NO_SECONDS_OR_MORE,
    ("spark", "gold_idle_trigger_s"): NO_SECONDS_OR_MORE,
    ("spark", "record_trigger_s"): NO_SECONDS_OR_MORE,
    ("spark", "record_idle_trigger_s"): NO_SECONDS_OR_MORE,
    ("spark", "history_nice"): Range(0, maximum=19, bounded=True),
    ("spark", "small_cluster_partitions"): Range(0, maximum=10_000_000),
    ("alerts", "hold_s"): NO_SECONDS_OR_MORE,
    ("alerts", "resolve_s"): NO_SECONDS_OR_MORE,
    ("alerts", "exit_ratio"): AT_LEAST_ONE,
    ("alerts", "stalled_s"): SECONDS,
    ("alerts", "no_data_s"): SECONDS,
    ("alerts", "under_replicated_s"): NO_SECONDS_OR_MORE,
    ("alerts", "left_behind_s"): NO_SECONDS_OR_MORE,
    ("alerts", "leader_imbalance_percentage"): Range(0, maximum=100, bounded=True),
    ("alerts", "imbalance_s"): NO_SECONDS_OR_MORE,
    ("alerts", "out_of_band_s"): NO_SECONDS_OR_MORE,
    ("alerts", "hot_broker_s"): NO_SECONDS_OR_MORE,
    ("alerts", "slow_broker_s"): NO_SECONDS_OR_MORE,
    ("alerts", "at_risk_s"): NO_SECONDS_OR_MORE,
    ("alerts", "slip_ratio"): POSITIVE,
    ("alerts", "margin_ratio"): AT_LEAST_ONE,
    ("alerts", "finish_within"): SECONDS,
    ("notify", "retry_s"): SECONDS,
    ("notify", "retry_max_s"): SECONDS,
    ("notify", "give_up_s"): NO_SECONDS_OR_MORE,
    ("notify", "digest_after"): COUNT,
    ("notify.slack", "timeout_s"): SECONDS,
    ("notify.alertmanager", "resend_s"): SECONDS,
    ("notify.alertmanager", "timeout_s"): SECONDS,
    ("notify.webhook", "timeout_s"): SECONDS,
    ("metrics", "stale_after_s"): NO_SECONDS_OR_MORE,
    ("metrics", "top_n"): Range(0, maximum=_INT),
    ("elections", "batch_partitions"): COUNT,
    ("elections", "batch_partitions_per_broker"): COUNT,
    ("elections", "batch_write_bytes_per_s"): TRAFFIC,
    ("elections", "capacity_bytes_per_s"): TRAFFIC,
    ("elections", "quiet_below"): POSITIVE,
    ("elections", "settle_s"): SECONDS,
    ("elections", "pause_s"): NO_SECONDS_OR_MORE,
    ("reassign", "rate_hours"): Range(1, maximum=8_784, bounded=True),
    ("reassign", "rate_percentile"): Range(1, maximum=100, bounded=True),
    ("reassign", "quiet_below"): POSITIVE,
    ("reassign", "settle_s"): SECONDS,
    ("reassign", "pause_s"): NO_SECONDS_OR_MORE,
    ("balance", "history"): SECONDS,
    ("balance", "percentile"): Range(0, above=True, maximum=100, bounded=True),
    ("balance", "detect_below"): NOT_NEGATIVE,
    ("balance", "move_overhead"): NOT_NEGATIVE,
    ("balance", "propose_every_s"): SECONDS,
    ("balance", "network_in_capacity"): TRAFFIC,
    ("balance", "network_out_capacity"): TRAFFIC,
    ("balance", "replica_capacity"): COUNT,
    ("migration", "prepare"): NO_SECONDS_OR_MORE,
    ("migration", "quiet_s"): SECONDS,
    ("migration.origin", "request_timeout_ms"): Range(0, above=True, maximum=_INT),
}

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SSL = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
_SASL = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


def require_cluster(settings: Settings) -> None:
    """Check that a cluster to watch is set.

    Raises:
        SettingError: ``cluster.bootstrap_servers`` is empty.
    """
    if not settings.cluster.bootstrap_servers:
        remedy = (
            "Write a headroom.toml with `headroom init` and set it there, or give HEADROOM_CLUSTER__BOOTSTRAP_SERVERS."
        )
        raise SettingError(("cluster", "bootstrap_servers"), "is not set", remedy)


def require_rules(settings: Settings) -> None:
    """Check the ranges of single values and the rules between values.

    Raises:
        SettingError: the first violated rule.
    """
    for error in _errors(settings):
        raise error


def _errors(settings: Settings) -> Iterator[SettingError]:
    for key, allowed in RANGES.items():
        value = attrgetter(".".join(key))(settings)
        rule = None if value is None else allowed.violated_rule(value)
        if rule is not None:
            yield SettingError(key, rule)
    yield from _texts(settings)
    yield from _sources(settings.collect)
    yield from _connection("cluster", settings.cluster)
    yield from _connection("ticks", settings.ticks)
    yield from _connection("migration.origin", settings.migration.origin)
    yield from _unused_security("ticks", settings.ticks, "the cluster of the topic")
    yield from _unused_security("migration.origin", settings.migration.origin, "the origin")
    yield from _ratios(settings.alerts)
    yield from notify_errors(settings.notify)


def _texts(settings: Settings) -> Iterator[SettingError]:
    for key in (("cluster", "name"), ("store", "path"), ("migration.origin", "name")):
        if not attrgetter(".".join(key))(settings).strip():
            yield SettingError(key, "must not be empty")
    for key in (("cluster", "name"), ("migration.origin", "name"), ("migration", "groups")):
        if not attrgetter(".".join(key))(settings).isprintable():
            # A name is part of rows, log lines and labels; a line break in it would forge a line.
            yield SettingError(key, "must have no control character or line break in it")
    if settings.migration.origin.bootstrap_servers and settings.migration.origin.name == settings.cluster.name:
        rule = f"is {settings.cluster.name}, as cluster.name is: the two clusters need names of their own"
        yield SettingError(("migration.origin", "name"), rule, "Name the origin otherwise.")
    if not settings.reassign.lock_group.isprintable():
        yield SettingError(("reassign", "lock_group"), "must have no control character or line break in it")
    if not TOPIC.fullmatch(settings.ticks.topic):
        remedy = "Use letters, digits, dots, _ and -, at most 249."
        yield SettingError(("ticks", "topic"), "must be the name of a topic", remedy)
    for error in quantity_errors(
        ("metrics", "listen"), settings.metrics.address(), partial(parse_address, least_port=0)
    ):
        yield SettingError(error.key, f"{error.rule}, nor off", 'Write it as "127.0.0.1:9644".')
    yield from _dashboard(settings.dashboard)
    yield from _store(settings.store)
    for section in ("elections", "reassign", "balance"):
        yield from quantity_errors((section, "window"), getattr(settings, section).window, parse_window)
    yield from quantity_errors(("alerts", "bootstrap_servers"), settings.alerts.bootstrap_servers, parse_addresses)
    for broker, address in settings.collect.endpoints.items():
        errors = list(quantity_errors(("collect", "endpoints"), broker, parse_id))
        for error in errors:
            yield SettingError(error.key, f"has a name that is not a broker id: {error.rule}", 'Write 1 = "host:port".')
        # Brokers are looked up by their number as it is usually written.
        if not errors and broker != str(parse_id(broker)):
            rule = f"has the name {broker!r}, which no broker has"
            yield SettingError(("collect", "endpoints"), rule, f'Write {parse_id(broker)} = "host:port".')
        yield from quantity_errors(("collect", "endpoints"), address, parse_address, f"broker {broker}: ")
    yield from _goals(settings.balance)
    yield from _heap(settings.spark)


def _dashboard(dashboard: DashboardSettings) -> Iterator[SettingError]:
    """Yield errors of the page, and of every way in which somebody could name another user than the proxy does."""
    yield from quantity_errors(("dashboard", "listen"), dashboard.listen, partial(parse_address, least_port=0))
    yield from duplicate_secrets("dashboard", dashboard, "token")
    header, proxies = strip(dashboard.proxy_user_header), strip(dashboard.trusted_proxies)
    header_key, proxies_key = ("dashboard", "proxy_user_header"), ("dashboard", "trusted_proxies")
    if header and not _HEADER.fullmatch(header):
        yield SettingError(header_key, "must be the name of a header", "Write one such as X-Forwarded-User.")
    elif header.lower() in _OF_CLIENTS.split() or header.lower().startswith("sec-"):
        rule = "is a header that browsers or proxies use for something else, so that it names no user"
        yield SettingError(header_key, rule, "Have the proxy set one of its own, such as X-Forwarded-User.")
    if header and not proxies:
        rule = "is empty, while dashboard.proxy_user_header is set: whoever sends that header would be trusted"
        yield SettingError(proxies_key, rule, "Name the addresses of the proxies, such as 10.0.0.5.")
    if proxies and not header:
        rule = "is not set, while dashboard.trusted_proxies is: nothing would be read from these proxies"
        yield SettingError(header_key, rule, "Name the header in which they name the user, such as X-Forwarded-User.")
    yield from quantity_errors(proxies_key, proxies, parse_machines)


def _goals(balance: BalanceSettings) -> Iterator[SettingError]:
    """Yield an error for a goal that is neither built in nor installed; classes of modules are loaded when needed."""
    if not balance.goals:
        return
    # Only here, because the goals need numpy.
    from headroom.planning.balance.goals.catalogue import configured_goals, known_goals

    key = ("balance", "goals")
    yield from quantity_errors(key, balance.goals, lambda text: parse_names(text, GOAL, GOALS))
    known = known_goals()
    for name in configured_goals(balance):
        is_class = all(part.isidentifier() for part in name.replace(":", ".", 1).split(".")) if ":" in name else False
        if not is_class and name not in known:
            yield SettingError(
                key, f"has the goal {name}, which is unknown", f"Use module:Class, or {', '.join(known)}."
            )


# Spark's own limit: one and a half times the 300 MiB that it reserves.
_SMALLEST_HEAP_BYTES = 450 * 1024 * 1024


def _heap(spark: SparkSettings) -> Iterator[SettingError]:
    key = ("spark", "conf" if spark.heap() != spark.driver_memory else "driver_memory")
    yield from quantity_errors(key, spark.heap(), _require_heap, "spark.driver.memory: " if key[1] == "conf" else "")


def _require_heap(text: str) -> None:
    if parse_heap_bytes(text) < _SMALLEST_HEAP_BYTES:
        raise QuantityError(f"has a heap of {text}; Spark needs 450m", 'Write it as "1g", or leave it out.')


# A colon before an @, unless it begins a port. A secret may contain a slash.
_PASSWORD = re.compile(r"://(?![^/@:]*:[0-9]+(?:/|$))[^@]*:[^@]*@")


def _store(store: StoreSettings) -> Iterator[SettingError]:
    """Yield an error for a location that contains a secret, because logs, errors and commands print locations."""
    remedy = "Give the store's credentials by the environment, or by [spark.conf]: docs/deployment.md."
    for name in ("path", "checkpoint_path"):
        location = getattr(store, name)
        if _PASSWORD.search(location):
            yield SettingError(("store", name), "must have no password in it", remedy)
        # As https://account.blob.core.windows.net/container?sv=...&sig=... of Azure.
        if "://" in location and "?" in location:
            yield SettingError(("store", name), "must have no query in it", remedy)
        if not location.isprintable():
            yield SettingError(("store", name), "must have no control character or line break in it")


def _ratios(alerts: AlertSettings) -> Iterator[SettingError]:
    if alerts.margin_ratio < alerts.exit_ratio:
        rule = f"is less than alerts.exit_ratio ({alerts.exit_ratio:g}): following the advice would not end the alert"
        yield SettingError(("alerts", "margin_ratio"), rule, "Raise it, or lower alerts.exit_ratio.")


def _sources(collect: CollectSettings) -> Iterator[SettingError]:
    yield from duplicate_secrets("collect", collect, "jmx_password", "http_password", "http_token")
    if collect.http_username and (collect.http_token or collect.http_token_file):
        yield SettingError(("collect", "http_username"), "is set beside a token", ONE_OF_TWO)
    yield from _certificate("collect", "http", collect.http_certfile, collect.http_keyfile)
    if collect.http_path and not collect.http_path.startswith("/"):
        yield SettingError(("collect", "http_path"), "must begin with a slash")
    yield from _unused_metrics(collect)


def _certificate(section: str, prefix: str, certificate: str | None, key: str | None) -> Iterator[SettingError]:
    if bool(certificate) != bool(key):
        missing = f"{prefix}_keyfile" if certificate else f"{prefix}_certfile"
        rule = "is missing: a certificate and its key go together"
        yield SettingError((section, missing), rule, "Set both or neither.")


def _unused_metrics(collect: CollectSettings) -> Iterator[SettingError]:
    """Yield an error for settings of a source that is not used, which would silently have no effect."""
    other = "http_" if collect.source is Source.JMX else "jmx_"
    default = CollectSettings()
    for item in fields(CollectSettings):
        if item.name.startswith(other) and getattr(collect, item.name) != getattr(default, item.name):
            rule = f"has no effect while collect.source is {collect.source.value}"
            yield SettingError(("collect", item.name), rule, "Set collect.source, or leave this out.")


def _connection(section: str, kafka: KafkaSettings) -> Iterator[SettingError]:
    yield from quantity_errors((section, "bootstrap_servers"), kafka.bootstrap_servers, parse_addresses)
    yield from duplicate_secrets(section, kafka, "sasl_password")
    yield from _certificate(section, "ssl", kafka.ssl_certfile, kafka.ssl_keyfile)
    if kafka.security_protocol in _SASL:
        yield from _sasl(section, kafka)
    yield from _unused_by_protocol(section, kafka)


def _sasl(section: str, kafka: KafkaSettings) -> Iterator[SettingError]:
    protocol = kafka.security_protocol.value
    if kafka.sasl_mechanism not in MECHANISMS:
        rule = f"must be one of {', '.join(MECHANISMS)} with {protocol}"
        yield SettingError((section, "sasl_mechanism"), rule, "Set it.")
    if not kafka.sasl_username:
        yield SettingError((section, "sasl_username"), f"is not set but {protocol} needs it", "Set it.")
    if not kafka.sasl_password and not kafka.sasl_password_file:
        variable = env_name((section, "sasl_password"))
        remedy = f"Give it by {variable}, or name a file in {section}.sasl_password_file."
        yield SettingError((section, "sasl_password"), f"is not set but {protocol} needs it", remedy)


def _unused_by_protocol(section: str, kafka: KafkaSettings) -> Iterator[SettingError]:
    """Yield an error for settings of SASL or TLS that the protocol does not use."""
    # Without a cluster of its own, no setting of the section has an effect.
    if not kafka.bootstrap_servers:
        return
    default = KafkaSettings()
    for prefix, users in (("sasl_", _SASL), ("ssl_", _SSL)):
        for item in fields(KafkaSettings):
            unused = item.name.startswith(prefix) and kafka.security_protocol not in users
            if unused and getattr(kafka, item.name) != getattr(default, item.name):
                rule = f"has no effect while {section}.security_protocol is {kafka.security_protocol.value}"
                remedy = f"Set the protocol to {' or '.join(user.value for user in users)}, or leave this out."
                yield SettingError((section, item.name), rule, remedy)


def _unused_security(section: str, kafka: KafkaSettings, what: str) -> Iterator[SettingError]:
    """Yield an error for security settings of a section without a cluster, which would silently have no effect."""
    if kafka.bootstrap_servers:
        return
    default = KafkaSettings()
    for item in fields(KafkaSettings):
        if item.name != "request_timeout_ms" and getattr(kafka, item.name) != getattr(default, item.name):
            remedy = f"Name {what} in {section}.bootstrap_servers, or leave this out."
            yield SettingError(
                (section, item.name), f"has no effect while {section}.bootstrap_servers is empty", remedy
            )
