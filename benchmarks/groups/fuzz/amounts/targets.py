"""Everything that reads a quantity as text: each option of each command, each setting, and two texts of Kafka.

The kinds and limits are written by hand, from the help of the commands and from docs/configuration.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from benchmarks.groups.fuzz.amounts import grammar
from headroom.cli.common.parameters import Quantity
from headroom.cli.config.load import read_settings
from headroom.cli.config.sources import all_keys, env_name
from headroom.cli.main import headroom
from headroom.cluster.admin.config_keys import LEADER_RATE, rates_of
from headroom.operations.balance.requests import Exclusions
from headroom.planning.elections.quiet_hours import DailyWindow
from headroom.planning.throttles.replica_lists import parse_replica_list
from headroom.schemas.errors import HeadroomError

_YEAR_S = 366 * 86_400
_INT, _LONG = 2**31 - 1, 2**63 - 1
_DYNAMIC_BROKER = 2


@dataclass(frozen=True)
class Target:
    """A reader of quantities, and what it has to return.

    Attributes:
        name: option, setting or text of Kafka.
        kind: kind of its texts.
        expected: value of a text by the grammar by hand; None: it has to be refused.
        read: returns the value of a text, in the same form.
        refusals: documented refusals of a text.
    """

    name: str
    kind: str
    expected: Callable[[str], Any]
    read: Callable[[str], Any]
    refusals: tuple[type[Exception], ...]


def _within(read: Callable[[str], Any], least: float, most: float, above: bool = False) -> Callable[[str], Any]:
    def limited(text: str) -> Any:
        value = read(text)
        return value if value is not None and least <= value <= most and not (above and value == least) else None

    return limited


def _rate_option(text: str) -> Any:
    """Whole bytes per second, 10,000 at least without a unit, 1 TB/s at most."""
    value = grammar.rate(text)
    if value is None or value > 1e12 or value < (0.5 if grammar.has_unit(text) else 10_000):
        return None
    return round(value)


def _bytes_option(text: str) -> Any:
    """Whole bytes, 1 MB at least without a unit."""
    value = grammar.amount_of_bytes(text)
    if value is None or not 0 < value < 1e18 or (value < 1e6 and not grammar.has_unit(text)):
        return None
    return round(value)


def _servers_option(text: str) -> Any:
    servers = grammar.addresses(text)
    return None if servers is None else ",".join(servers)


def _address_option(text: str) -> Any:
    """Host and port; port 0 is a free one."""
    address = grammar.trimmed(text)
    if grammar.address(address, 0) is None:
        return None
    host, _, port = address.rpartition(":")
    return host, int(port)


_DURATION = ("duration", _within(grammar.duration, 0, _YEAR_S, above=True))
_COUNT = ("whole", _within(grammar.whole, 1, 10**19))
_RATE = ("rate", _rate_option)
_IDS, _TOPICS = ("ids", grammar.ids), ("topics", grammar.topics)

# Kind and grammar of each option, by its name; of a command alone where another has the same name for something else.
OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "--auto-throttle-up-to": _RATE,
    "--batches": ("batches", grammar.batches),
    "--bootstrap-servers": ("addresses", _servers_option),
    "--brokers": _IDS,
    "--drain": _IDS,
    "--exclude": ("exclusions", grammar.exclusions),
    "--finish-within": _DURATION,
    "--for": _DURATION,
    "--goals": ("goals", grammar.goals),
    "--heartbeat-fd": ("whole", grammar.whole),
    "--from": ("moment", grammar.moment),
    "--listen": ("address", _address_option),
    "--log-dirs": _RATE,
    "--log-dirs-throttle": _RATE,
    "--max-bytes": ("amount", _bytes_option),
    "--max-moves": _COUNT,
    "--max-throttle": _RATE,
    "--nice": ("whole", _within(grammar.whole, 0, 19)),
    "--prefix": _COUNT,
    "--rate": _RATE,
    "--replace": ("replacements", grammar.replacements),
    "--replication-factor": ("whole", _within(grammar.whole, 1, 32_767)),
    "--starts": ("moment", grammar.moment),
    "--throttle": _RATE,
    "--to": ("moment", grammar.moment),
    "--to-brokers": _IDS,
    "--topic": ("topic", lambda text: grammar.topic(grammar.trimmed(text))),
    "--topics": _TOPICS,
    "--until-in-band": _IDS,
    "--what-if": ("change", grammar.change),
    "--window": ("window", grammar.window),
    "TOPIC": ("topic", lambda text: grammar.topic(grammar.trimmed(text))),
    "TOPIC_NAMES": ("topic", lambda text: grammar.topic(grammar.trimmed(text))),
    "balance explain NUMBER": _COUNT,
    "cluster up --base-port": ("whole", _within(grammar.whole, 1024, 65_000)),
    "cluster up --brokers": ("whole", _within(grammar.whole, 1, 5)),
}


@dataclass(frozen=True)
class Setting:
    """A setting.

    Attributes:
        kind: kind of its texts.
        expected: its value by the grammar by hand.
        others: variables without which it has no effect.
    """

    kind: str
    expected: Callable[[str], Any]
    others: Mapping[str, str] = field(default_factory=dict)


def _whole(least: int, most: int = _INT) -> Setting:
    return Setting("whole", _within(grammar.whole, least, most))


def _bytes_per_s(least: float = 0.0, above: bool = True) -> Setting:
    return Setting("rate", _within(grammar.rate, least, float("inf"), above))


def _as_it_is(kind: str, read: Callable[[str], Any]) -> Setting:
    return Setting(kind, lambda text: None if read(text) is None else text)


_JOLOKIA = {"HEADROOM_COLLECT__SOURCE": "jolokia"}
_OWN_TICKS = {"HEADROOM_TICKS__BOOTSTRAP_SERVERS": "b:1", "HEADROOM_TICKS__SECURITY_PROTOCOL": "SSL"}
_OWN_ORIGIN = {
    "HEADROOM_MIGRATION__ORIGIN__BOOTSTRAP_SERVERS": "b:1",
    "HEADROOM_MIGRATION__ORIGIN__SECURITY_PROTOCOL": "SSL",
}
_SOME_TIME = Setting("duration", _within(grammar.duration, 0, _YEAR_S, above=True))
_TIME = Setting("duration", _within(grammar.duration, 0, _YEAR_S))
_DAYS = _whole(0, 36_500)
_TRAFFIC = Setting("rate", _within(grammar.rate, 1_000, 1e18))
_PERCENT = Setting("number", _within(grammar.number, 0, 100))
_WINDOW, _SERVERS = _as_it_is("window", grammar.window), _as_it_is("addresses", grammar.addresses)

SETTINGS: Mapping[str, Setting] = {
    "cluster.bootstrap_servers": _SERVERS,
    "cluster.ssl_check_hostname": Setting(
        "switch",
        grammar.switch,
        {"HEADROOM_CLUSTER__SECURITY_PROTOCOL": "SSL", "HEADROOM_CLUSTER__BOOTSTRAP_SERVERS": "a:1"},
    ),
    "cluster.request_timeout_ms": _whole(1),
    "cluster.replication_capacity": _TRAFFIC,
    "ticks.bootstrap_servers": _SERVERS,
    "ticks.ssl_check_hostname": Setting("switch", grammar.switch, _OWN_TICKS),
    "ticks.request_timeout_ms": _whole(1),
    "ticks.partitions": _whole(1, 100_000),
    "ticks.replication_factor": _whole(0, 32_767),
    "ticks.retention_ms": _whole(1, _LONG),
    "collect.interval_s": _SOME_TIME,
    "collect.port": _whole(1, 65_535),
    "collect.rate_window_s": _TIME,
    "collect.broker_timeout_s": _TIME,
    "collect.topic_config_max_age_s": _TIME,
    "collect.metadata_max_age_s": _TIME,
    "collect.load_interval_s": _TIME,
    "collect.log_dirs_interval_s": _TIME,
    "collect.measure_s": Setting("duration", _within(grammar.duration, 1, _YEAR_S)),
    "collect.jmx_ssl": Setting("switch", grammar.switch),
    "collect.http_ssl": Setting("switch", grammar.switch, _JOLOKIA),
    "collect.http_check_hostname": Setting("switch", grammar.switch, _JOLOKIA),
    "store.bronze_keep_days": _DAYS,
    "store.silver_keep_days": _DAYS,
    "store.gold_keep_days": _DAYS,
    "store.migration_syncs_keep_days": _DAYS,
    "store.partition_load_keep_days": _DAYS,
    "store.broker_load_keep_days": _DAYS,
    "store.maintain_every_s": _TIME,
    "spark.driver_memory": _as_it_is("heap", grammar.heap),
    "spark.shuffle_partitions": _whole(1, 100_000),
    "spark.history_nice": _whole(0, 19),
    "spark.small_cluster_partitions": _whole(0, 10_000_000),
    "spark.gold_trigger_s": _TIME,
    "spark.gold_idle_trigger_s": _TIME,
    "spark.record_trigger_s": _TIME,
    "spark.record_idle_trigger_s": _TIME,
    "alerts.hold_s": _TIME,
    "alerts.resolve_s": _TIME,
    # Not above alerts.margin_ratio, which is 1.2, nor that below this, which is 1.05.
    "alerts.exit_ratio": Setting("number", _within(grammar.number, 1, 1.2)),
    "alerts.margin_ratio": Setting("number", _within(grammar.number, 1.05, float("inf"))),
    "alerts.slip_ratio": Setting("number", _within(grammar.number, 0, float("inf"), above=True)),
    "alerts.stalled_s": _SOME_TIME,
    "alerts.no_data_s": _SOME_TIME,
    "alerts.under_replicated_s": _TIME,
    "alerts.left_behind_s": _TIME,
    "alerts.leader_imbalance_percentage": _PERCENT,
    "alerts.imbalance_s": _TIME,
    "alerts.out_of_band_s": _TIME,
    "alerts.hot_broker_s": _TIME,
    "alerts.slow_broker_s": _TIME,
    "alerts.at_risk_s": _TIME,
    "alerts.finish_within": _SOME_TIME,
    "alerts.bootstrap_servers": _SERVERS,
    "notify.log": Setting("switch", grammar.switch),
    # Not above notify.retry_max_s, which is 60, nor that below this, which is 1.
    "notify.retry_s": Setting("duration", _within(grammar.duration, 0, 60, above=True)),
    "notify.retry_max_s": Setting("duration", _within(grammar.duration, 1, _YEAR_S)),
    "notify.give_up_s": _TIME,
    "notify.digest_after": _whole(1),
    "notify.slack.timeout_s": _SOME_TIME,
    "notify.alertmanager.resend_s": _SOME_TIME,
    "notify.alertmanager.timeout_s": _SOME_TIME,
    "notify.webhook.timeout_s": _SOME_TIME,
    "metrics.listen": _as_it_is("address", lambda text: grammar.address(grammar.trimmed(text), 0)),
    "metrics.stale_after_s": _TIME,
    "dashboard.listen": _as_it_is("address", lambda text: grammar.address(grammar.trimmed(text), 0)),
    "metrics.top_n": _whole(0),
    "elections.batch_partitions": _whole(1),
    "elections.batch_partitions_per_broker": _whole(1),
    "elections.batch_write_bytes_per_s": _TRAFFIC,
    "elections.capacity_bytes_per_s": _TRAFFIC,
    "elections.quiet_below": _bytes_per_s(),
    "elections.window": _WINDOW,
    "elections.settle_s": _SOME_TIME,
    "elections.pause_s": _TIME,
    "reassign.rate_hours": _whole(1, 8_784),
    "reassign.rate_percentile": Setting("number", _within(grammar.number, 1, 100)),
    "reassign.window": _WINDOW,
    "reassign.quiet_below": _bytes_per_s(),
    "reassign.settle_s": _SOME_TIME,
    "reassign.pause_s": _TIME,
    "balance.history": _SOME_TIME,
    "balance.percentile": Setting("number", _within(grammar.number, 0, 100, above=True)),
    "balance.goals": _as_it_is("goals", grammar.goals),
    "balance.detect_below": _bytes_per_s(above=False),
    "balance.move_overhead": Setting("amount", _within(grammar.amount_of_bytes, 0, float("inf"))),
    "balance.propose_every_s": _SOME_TIME,
    "balance.network_in_capacity": _TRAFFIC,
    "balance.network_out_capacity": _TRAFFIC,
    "balance.replica_capacity": _whole(1),
    "balance.window": _WINDOW,
    "migration.prepare": _TIME,
    "migration.quiet_s": _SOME_TIME,
    "migration.origin.bootstrap_servers": _SERVERS,
    "migration.origin.ssl_check_hostname": Setting("switch", grammar.switch, _OWN_ORIGIN),
    "migration.origin.request_timeout_ms": _whole(1),
}
# Goals that exist; of a class of a module only the form is checked.
_GOALS = (
    *("disk", "network_in", "network_out", "requests", "leaders", "replicas", "topic_leaders", "topic_replicas"),
    *("rack_spread", "disk_capacity", "network_in_capacity", "network_out_capacity", "replica_capacity"),
)


def targets() -> Iterator[Target]:
    """Yield every reader.

    Raises:
        LookupError: a command has an option, or the settings have a number or switch, that the tables do not have.
    """
    yield from _options(headroom, ())
    file = Path(tempfile.mkdtemp(prefix="headroom-fuzz-")) / "headroom.toml"
    file.write_text("", encoding="utf-8")
    missing = {
        f"{section}.{name}"
        for (section, name), default in all_keys().items()
        if isinstance(default, (bool, int, float))
    } - SETTINGS.keys()
    if missing:
        raise LookupError(f"the benchmark has no grammar of {', '.join(sorted(missing))}")
    yield from (_setting(name, setting, file) for name, setting in SETTINGS.items())
    yield Target("throttled replica list", "replica list", grammar.replica_list, _replica_list, (ValueError,))
    yield Target("throttle rate of a broker", "whole", grammar.whole, _rate_of_kafka, ())


def _options(command: click.Command, words: tuple[str, ...]) -> Iterator[Target]:
    for parameter in command.params:
        if isinstance(parameter.type, Quantity):
            option = next((name for name in parameter.opts if name.startswith("--")), str(parameter.name).upper())
            name = " ".join((*words, option))
            entry = OPTIONS.get(name, OPTIONS.get(option))
            if entry is None:
                raise LookupError(f"the benchmark has no grammar of {name}")
            yield Target(name, *entry, _reader(parameter), (click.UsageError,))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            inner_command = command.get_command(context, inner)
            if inner_command is not None:
                yield from _options(inner_command, (*words, inner))


def _reader(parameter: click.Parameter) -> Callable[[str], Any]:
    return lambda text: _plain(parameter.type.convert(text, parameter, None))


def _plain(value: Any) -> Any:
    """Return the value of an option in the form of the grammar."""
    if isinstance(value, DailyWindow):
        zone = getattr(value.zone, "key", "UTC")
        return (value.begins.hour, value.begins.minute), (value.ends.hour, value.ends.minute), zone
    if isinstance(value, Exclusions):
        return sorted([*value.topics, *(f"broker:{broker}" for broker in value.brokers)])
    # A change of a cluster is known by its text.
    return getattr(value, "text", value)


def _setting(name: str, setting: Setting, file: Path) -> Target:
    section, _, key = name.rpartition(".")
    variable, of = env_name((section, key)), attrgetter(name)

    def expected(text: str) -> Any:
        value = setting.expected(text)
        if name == "balance.goals" and value is not None:
            parts = [part.strip(" ") for part in grammar.trimmed(text).split(",")]
            return value if all(":" in part or part in _GOALS for part in parts) else None
        # The metrics of a process may be off.
        return text if name == "metrics.listen" and grammar.trimmed(text) in ("off", "") else value

    def read(text: str) -> Any:
        return of(read_settings(str(file), {**setting.others, variable: text}))

    return Target(name, setting.kind, expected, read, (HeadroomError,))


def _replica_list(text: str) -> Any:
    replica_list = parse_replica_list(text)
    return "" if replica_list is None else "*" if replica_list.every else replica_list.entries


def _rate_of_kafka(text: str) -> Any:
    """Return the rate that a broker reports; None: it is unknown."""
    answer = SimpleNamespace(name=LEADER_RATE, value=text, config_source=_DYNAMIC_BROKER, synonyms=[])
    rates = rates_of([answer])
    if not rates.known:
        return None
    # Kafka's own default means no limit, as if there were no rate.
    return _LONG if rates.leader_bytes_per_s is None else rates.leader_bytes_per_s
