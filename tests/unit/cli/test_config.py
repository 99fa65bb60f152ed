from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest

from headroom.cli.config.load import load_settings, read_settings
from headroom.cli.config.sources import all_keys, env_name
from headroom.cli.config.template import commented_toml, markdown, setting_docs
from headroom.cli.config.validation import RANGES
from headroom.cli.config.values import BYTES, DURATIONS, PERCENTAGES, RATES, type_of
from headroom.cluster.secrets import secret
from headroom.operations.receivers import build_receivers
from headroom.schemas.alerts import AlertKind
from headroom.schemas.config import CollectSettings, MaintenanceWindow, SecurityProtocol, Source
from headroom.schemas.errors import HeadroomError

SERVERS = {"HEADROOM_CLUSTER__BOOTSTRAP_SERVERS": "broker1:9092"}
REPOSITORY = Path(__file__).resolve().parents[3]
PERCENT = "is not a number of percent without a sign, such as 10 or 12.5"
TIME = "is not seconds or a time such as 90s, 30m or 1h30m"
RATE = "is not a rate in bytes per second, such as 12500000, 12.5MB or 12MiB/s"
WHOLE = "is not a whole number without a sign, such as 12"
SERVER_LIST = "is not a list of host:port, such as broker1:9092,broker2:9092"
URLS = "is not a list of URLs without users or passwords, such as http://a:9093,http://b:9093"
URL = "must be a URL that begins with http:// or https://, without a user or password in it"


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    return tmp_path / "headroom.toml"


def error_of(file: Path | None, environ: dict[str, str]) -> HeadroomError:
    with pytest.raises(HeadroomError) as caught:
        load_settings(None if file is None else str(file), environ)
    return caught.value


def test_environment_wins_over_file_and_file_over_default(settings_file: Path) -> None:
    settings_file.write_text('[cluster]\nname = "file"\n[collect]\ninterval_s = 2\n')
    settings = load_settings(str(settings_file), {**SERVERS, "HEADROOM_CLUSTER__NAME": "environment"})
    assert settings.cluster.name == "environment"
    assert settings.collect.interval_s == 2.0
    assert settings.alerts.margin_ratio == 1.2


# Keys that exclude each other: a password and its file, a token and a user.
FILES = ("password_file", "token_file", "secret_file", "webhook_url_file")
APART = [key for key in all_keys() if key[1].endswith(FILES)] + [
    ("collect", "http_token"),
    ("notify.slack", "webhook_url"),
]


@pytest.mark.parametrize(
    ("source", "protocol", "others"),
    [
        ("jmx", "SASL_SSL", ("http_",)),
        ("jolokia", "SASL_PLAINTEXT", ("jmx_", "ssl_")),
        ("prometheus", "SSL", ("jmx_", "sasl_")),
    ],
)
def test_every_key_can_be_given_in_the_environment(source: str, protocol: str, others: tuple[str, ...]) -> None:
    values = {
        ("cluster", "bootstrap_servers"): "a:1",
        ("ticks", "bootstrap_servers"): "b:2",
        ("cluster", "security_protocol"): protocol,
        ("ticks", "security_protocol"): protocol,
        ("cluster", "sasl_mechanism"): "PLAIN",
        ("ticks", "sasl_mechanism"): "PLAIN",
        ("collect", "source"): source,
        ("cluster", "log_dir_volumes"): "separate",
        ("cluster", "ssl_check_hostname"): "false",
        ("ticks", "ssl_check_hostname"): "false",
        ("collect", "http_check_hostname"): "false",
        ("collect", "http_path"): "/7",
        ("collect", "jmx_ssl"): "true",
        ("collect", "http_ssl"): "true",
        ("collect", "endpoints"): '{"1": "broker1:9999"}',
        ("alerts", "maintenance"): '[{"days": ["sat"], "at": "22:00", "lasts": "4h"}]',
        ("metrics", "listen"): "0.0.0.0:9644",
        ("dashboard", "listen"): "127.0.0.1:8601",
        ("dashboard", "proxy_user_header"): "X-Forwarded-User",
        ("dashboard", "trusted_proxies"): "10.0.0.5",
        ("alerts", "bootstrap_servers"): "c:3",
        ("spark", "driver_memory"): "7g",
        ("balance", "goals"): "disk",
        ("elections", "window"): "01:00-05:00",
        ("reassign", "window"): "01:00-05:00",
        ("balance", "window"): "01:00-05:00",
        ("migration.origin", "bootstrap_servers"): "d:4",
        ("migration.origin", "security_protocol"): protocol,
        ("migration.origin", "sasl_mechanism"): "PLAIN",
        ("migration.origin", "ssl_check_hostname"): "false",
        ("migration.origin", "name"): "old",
        ("spark", "conf"): '{"spark.ui.enabled": false, "spark.executor.cores": 2}',
        ("notify", "log"): "true",
        ("notify", "least_severity"): "info",
        ("notify", "dashboard_url"): "http://a/{cluster}",
        ("notify", "runbook_url"): "https://a/{kind}",
        ("notify.slack", "channel"): "C0123456789",
        ("notify.slack", "api_url"): "http://a/",
        ("notify.slack", "mention_critical"): "<!subteam^S0123456789> <@U0123456789>",
        ("notify.slack", "mention_warning"): "<!here>",
        ("notify.slack", "mention_info"): "<@W0123456789>",
        ("notify.alertmanager", "urls"): "http://a:9093,http://b:9093",
        ("notify.webhook", "url"): "https://a/b",
    }
    left_out = {*APART, *(key for key in all_keys() if key[1].startswith(others))}
    environ = {
        env_name(key): values.get(key, "7000" if key in RATES else "7") for key in all_keys() if key not in left_out
    }
    # Files are not required to exist here.
    settings = read_settings(None, environ)
    assert settings.ticks.security_protocol is SecurityProtocol(protocol)
    assert settings.collect.endpoints == {"1": "broker1:9999"}
    assert settings.spark.conf == {"spark.ui.enabled": "false", "spark.executor.cores": "2"}
    unchanged = {key for key, default in all_keys().items() if _value(settings, key) == default}
    # JMX is the default.
    assert unchanged == left_out | ({("collect", "source")} if source == "jmx" else set())


def _value(settings: object, key: tuple[str, str]) -> object:
    return attrgetter(".".join(key))(settings)


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings(None, {**SERVERS, "HEADROOM_CLUSTER__NAME": ""}).cluster.name == "kafka"


def test_a_variable_that_lacks_an_underscore_is_refused_and_others_with_the_prefix_are_not() -> None:
    error = error_of(None, {**SERVERS, "HEADROOM_STORE_PATH": "/data"})
    assert (error.subject, error.remedy) == ("environment variable HEADROOM_STORE_PATH", "Write HEADROOM_STORE__PATH.")
    # Kubernetes sets these in every container beside a service "headroom".
    of_a_service = {"HEADROOM_PORT": "tcp://10.0.0.1:9644", "HEADROOM_SERVICE_HOST": "10.0.0.1"}
    assert load_settings(None, {**SERVERS, **of_a_service}).cluster.name == "kafka"


def test_an_empty_name_of_a_file_and_a_link_to_none_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HeadroomError, match="--config: is empty"):
        load_settings("", SERVERS)
    monkeypatch.chdir(tmp_path)
    Path("headroom.toml").symlink_to(tmp_path / "gone.toml")
    assert error_of(None, SERVERS).rule == "is not there"


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ('[balance]\ngoals = "disk:"', "balance.goals"),
        ('[balance]\ngoals = ":Goal"', "balance.goals"),
        ('[spark]\ndriver_memory = "0g"', "spark.driver_memory"),
        ('[spark]\ndriver_memory = "256m"', "spark.driver_memory"),
        ('[spark.conf]\n"spark.jars" = ["a"]', "spark.conf"),
    ],
)
def test_a_value_that_would_fail_later_is_refused_when_settings_are_read(
    settings_file: Path, text: str, subject: str
) -> None:
    settings_file.write_text(text)
    assert error_of(settings_file, SERVERS).subject == f"{subject} in {settings_file}"


def test_variables_without_a_section_are_left_alone() -> None:
    assert load_settings(None, {**SERVERS, "HEADROOM_JARS": "/opt/jars"}).cluster.name == "kafka"


@pytest.mark.parametrize(
    ("text", "subject", "remedy"),
    [
        ("[clster]\nname = 'a'", "[clster] in", "Did you mean cluster?"),
        ("[cluster]\nbootstrap_server = 'a:1'", "cluster.bootstrap_server in", "Did you mean bootstrap_servers?"),
        ("[notify.slak]\nchannel = 'C1'", "notify.slak in", "Did you mean slack?"),
        ("[notify.slack]\ntokn_file = 'a'", "notify.slack.tokn_file in", "Did you mean token_file?"),
    ],
)
def test_an_unknown_name_is_an_error_that_suggests_the_nearest_one(
    settings_file: Path, text: str, subject: str, remedy: str
) -> None:
    settings_file.write_text(text)
    error = error_of(settings_file, SERVERS)
    assert error.subject.startswith(subject)
    assert str(settings_file) in error.subject
    assert error.remedy == remedy


@pytest.mark.parametrize(
    ("content", "named", "remedy"),
    [
        ("cluster = 3", "cluster", "Write [cluster] in a line of its own"),
        ('[[cluster]]\nname = "a"', "cluster", "Write [cluster] in a line of its own"),
        ('[notify]\nslack = "#a"', "notify.slack", "Write [notify.slack] in a line of its own"),
        ('security_protocol = "SSL"', "security_protocol", "Write it below [cluster] or [ticks] or [migration.origin]"),
        ("interval_s = 1", "interval_s", "Write it below [collect]."),
        ("clustre = 3", "clustre", "Did you mean cluster?"),
        (
            "gone = 1",
            "gone",
            "There are: cluster, ticks, collect, store, spark, alerts, notify, notify.slack, "
            "notify.alertmanager, notify.webhook, metrics, dashboard, elections, reassign, balance, migration, "
            "migration.origin.",
        ),
    ],
)
def test_a_key_outside_of_its_section_is_an_error_that_names_the_section(
    settings_file: Path, content: str, named: str, remedy: str
) -> None:
    settings_file.write_text(content, encoding="utf-8")
    error = error_of(settings_file, SERVERS)
    assert error.subject == f"{named} in {settings_file}"
    assert error.remedy.startswith(remedy)


def test_an_unknown_variable_is_an_error_that_suggests_the_nearest_one() -> None:
    error = error_of(None, {**SERVERS, "HEADROOM_COLLECT__INTERVL_S": "1"})
    assert error.remedy == "Did you mean HEADROOM_COLLECT__INTERVAL_S?"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("HEADROOM_COLLECT__INTERVAL_S", "0", "must be greater than 0"),
        ("HEADROOM_COLLECT__INTERVAL_S", "nan", f"'nan' {TIME}"),
        ("HEADROOM_COLLECT__INTERVAL_S", "inf", f"'inf' {TIME}"),
        ("HEADROOM_COLLECT__INTERVAL_S", "1e300", f"'1e300' {TIME}"),
        ("HEADROOM_COLLECT__INTERVAL_S", "400d", "must be at most 31,622,400"),
        ("HEADROOM_CLUSTER__REQUEST_TIMEOUT_MS", "9" * 18, "must be at most 2,147,483,647"),
        ("HEADROOM_CLUSTER__REQUEST_TIMEOUT_MS", "9" * 24, f"'{'9' * 24}' {WHOLE}"),
        ("HEADROOM_STORE__GOLD_KEEP_DAYS", "9" * 18, "must be at most 36,500"),
        ("HEADROOM_STORE__PATH", "s3a://key:hidden@bucket/a", "must have no password in it"),
        ("HEADROOM_STORE__PATH", "https://a.blob.core.windows.net/c?sv=1&sig=hidden", "must have no query in it"),
        ("HEADROOM_STORE__CHECKPOINT_PATH", "hdfs://me:hidden@host:9000/a", "must have no password in it"),
        ("HEADROOM_STORE__PATH", "a\nb", "must have no control character or line break in it"),
        ("HEADROOM_CLUSTER__REPLICATION_CAPACITY", "1e999", f"'1e999' {RATE}"),
        ("HEADROOM_CLUSTER__REPLICATION_CAPACITY", "1,25GB", f"'1,25GB' {RATE}"),
        ("HEADROOM_COLLECT__INTERVAL_S", "soon", f"'soon' {TIME}"),
        ("HEADROOM_CLUSTER__NAME", "a\nb", "must have no control character or line break in it"),
        ("HEADROOM_CLUSTER__NAME", "a\x1b[2J", "must have no control character or line break in it"),
        ("HEADROOM_REASSIGN__LOCK_GROUP", "a\nb", "must have no control character or line break in it"),
        ("HEADROOM_COLLECT__PORT", "70000", "must be from 1 to 65535"),
        ("HEADROOM_ALERTS__EXIT_RATIO", "0.9", "must be 1 or more"),
        ("HEADROOM_ALERTS__LEADER_IMBALANCE_PERCENTAGE", "10%", f"'10%' {PERCENT}"),
        ("HEADROOM_ALERTS__LEADER_IMBALANCE_PERCENTAGE", "ten", f"'ten' {PERCENT}"),
        ("HEADROOM_ALERTS__LEADER_IMBALANCE_PERCENTAGE", "-1", f"'-1' {PERCENT}"),
        ("HEADROOM_ALERTS__LEADER_IMBALANCE_PERCENTAGE", "100.5", "must be from 0 to 100"),
        ("HEADROOM_ALERTS__LEADER_IMBALANCE_PERCENTAGE", "nan", f"'nan' {PERCENT}"),
        ("HEADROOM_ALERTS__IMBALANCE_S", "-1", f"'-1' {TIME}"),
        ("HEADROOM_ALERTS__FINISH_WITHIN", "soon", f"'soon' {TIME}"),
        ("HEADROOM_COLLECT__SOURCE", "snmp", "must be 'jmx', 'jolokia' or 'prometheus'"),
        ("HEADROOM_COLLECT__HTTP_PASSWORD", "p", "has no effect while collect.source is jmx"),
        (
            "HEADROOM_COLLECT__ENDPOINTS",
            '{"one": "a:1"}',
            "has a name that is not a broker id: 'one' is not a broker id such as 1",
        ),
        ("HEADROOM_COLLECT__ENDPOINTS", '{"1": "a"}', "broker 1: 'a' is not host:port, such as broker1:9092"),
        ("HEADROOM_COLLECT__ENDPOINTS", "{1", "must be a JSON object"),
        ("HEADROOM_CLUSTER__SECURITY_PROTOCOL", "TLS", "must be 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL_SSL'"),
        ("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "broker1", f"'broker1' {SERVER_LIST}"),
        ("HEADROOM_TICKS__BOOTSTRAP_SERVERS", "a:1;b:2", f"'a:1;b:2' {SERVER_LIST}"),
        ("HEADROOM_ALERTS__BOOTSTRAP_SERVERS", "a:1,", f"'a:1,' {SERVER_LIST}"),
        ("HEADROOM_ALERTS__MAINTENANCE", "[1", "must be a JSON array of objects"),
        ("HEADROOM_ALERTS__MAINTENANCE", "{}", "must be tables"),
        ("HEADROOM_METRICS__LISTEN", "9644", "'9644' is not host:port, such as broker1:9092, nor off"),
        (
            "HEADROOM_METRICS__LISTEN",
            "localhost:70000",
            "'localhost:70000' is not host:port, such as broker1:9092, nor off",
        ),
        (
            "HEADROOM_DASHBOARD__PROXY_USER_HEADER",
            "X-User",
            "is empty, while dashboard.proxy_user_header is set: whoever sends that header would be trusted",
        ),
        (
            "HEADROOM_DASHBOARD__TRUSTED_PROXIES",
            "10.0.0.5",
            "is not set, while dashboard.trusted_proxies is: nothing would be read from these proxies",
        ),
        ("HEADROOM_DASHBOARD__PROXY_USER_HEADER", "X User", "must be the name of a header"),
        ("HEADROOM_DASHBOARD__PROXY_USER_HEADER", "X-User:", "must be the name of a header"),
        ("HEADROOM_METRICS__TOP_N", "-1", f"'-1' {WHOLE}"),
        ("HEADROOM_CLUSTER__SSL_CERTFILE", "a.pem", "is missing: a certificate and its key go together"),
        ("HEADROOM_NOTIFY__RETRY_S", "0", "must be greater than 0"),
        ("HEADROOM_NOTIFY__RETRY_S", "61", "must not be less than notify.retry_s"),
        ("HEADROOM_NOTIFY__RUNBOOK_URL", "runbook", URL),
        ("HEADROOM_NOTIFY__SLACK__TOKEN", "xoxb-1", "is not set but a token is"),
        ("HEADROOM_NOTIFY__SLACK__CHANNEL", "C0123456", "has no effect without a token"),
        ("HEADROOM_NOTIFY__SLACK__TIMEOUT_S", "long", f"'long' {TIME}"),
        ("HEADROOM_NOTIFY__ALERTMANAGER__URLS", "http://a:9093,b:9093", f"'http://a:9093,b:9093' {URLS}"),
        (
            "HEADROOM_NOTIFY__ALERTMANAGER__URLS",
            "http://a:9093,http://b:9093/x/api/v2/alerts",
            "must end before the path of the API, but http://b:9093/x/api/v2/alerts has it",
        ),
        ("HEADROOM_NOTIFY__ALERTMANAGER__USERNAME", "me", "is not set but a user is"),
        ("HEADROOM_NOTIFY__ALERTMANAGER__PASSWORD", "p", "is not set but a password is"),
        ("HEADROOM_NOTIFY__WEBHOOK__URL", "https://me:secret@a/", URL),
        ("HEADROOM_NOTIFY__WEBHOOK__URL", "https://token@a/", URL),
        ("HEADROOM_NOTIFY__WEBHOOK__SECRET", "s", "is not set but a secret is"),
        ("HEADROOM_ALERTS__LEADER_IMBALANCE_PERCENTAGE", "101", "must be from 0 to 100"),
        ("HEADROOM_ELECTIONS__BATCH_PARTITIONS", "0", "must be 1 or more"),
        ("HEADROOM_ELECTIONS__QUIET_BELOW", "0", "must be greater than 0"),
        ("HEADROOM_ELECTIONS__WINDOW", "25:00-05:00", "'25:00-05:00' is not a window of the day"),
        ("HEADROOM_ELECTIONS__WINDOW", "05:00", "'05:00' is not a window of the day"),
        ("HEADROOM_ELECTIONS__WINDOW", "05:00-05:00", "'05:00-05:00' is not a window of the day"),
        (
            "HEADROOM_ELECTIONS__WINDOW",
            "01:00-05:00 Mars/Base",
            "names the time zone Mars/Base, which this machine does not know",
        ),
        (
            "HEADROOM_ELECTIONS__WINDOW",
            "01:00-05:00 ../etc",
            "'01:00-05:00 ../etc' is not a window of the day",
        ),
        ("HEADROOM_BALANCE__GOALS", "disk,foo", "has the goal foo, which is unknown"),
        ("HEADROOM_BALANCE__GOALS", "disk;leaders", "'disk;leaders' is not a list of goals, such as disk,leaders"),
        ("HEADROOM_BALANCE__GOALS", "disk,disk", "'disk,disk' names disk twice"),
        ("HEADROOM_SPARK__DRIVER_MEMORY", "1gb", "'1gb' is not the size of a heap"),
        ("HEADROOM_SPARK__CONF", '{"spark.driver.memory": "2"}', "spark.driver.memory: '2' is not the size of a heap"),
        ("HEADROOM_TICKS__TOPIC", "a b", "must be the name of a topic"),
        ("HEADROOM_COLLECT__JMX_SSL", "2", "'2' is neither true nor false"),
        ("HEADROOM_CLUSTER__SASL_USERNAME", "me", "has no effect while cluster.security_protocol is PLAINTEXT"),
        ("HEADROOM_CLUSTER__SSL_CAFILE", "ca.pem", "has no effect while cluster.security_protocol is PLAINTEXT"),
        ("HEADROOM_TICKS__SASL_USERNAME", "me", "has no effect while ticks.bootstrap_servers is empty"),
        (
            "HEADROOM_MIGRATION__ORIGIN__SASL_USERNAME",
            "me",
            "has no effect while migration.origin.bootstrap_servers is empty",
        ),
        ("HEADROOM_MIGRATION__ORIGIN__NAME", " ", "must not be empty"),
        ("HEADROOM_MIGRATION__ORIGIN__NAME", "a\nb", "must have no control character or line break in it"),
        ("HEADROOM_MIGRATION__QUIET_S", "0", "must be greater than 0"),
        ("HEADROOM_MIGRATION__PREPARE", "5x", "'5x' is not seconds or a time such as 90s, 30m or 1h30m"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(name: str, text: str, rule: str) -> None:
    assert error_of(None, {**SERVERS, name: text}).rule == rule


@pytest.mark.parametrize("header", ["Host", "cookie", "User-Agent", "X-Forwarded-For", "Sec-Fetch-Site", "ORIGIN"])
def test_a_header_that_whoever_asks_fills_in_names_no_user(header: str) -> None:
    proxies = {"HEADROOM_DASHBOARD__TRUSTED_PROXIES": "10.0.0.5"}
    error = error_of(None, {**SERVERS, **proxies, "HEADROOM_DASHBOARD__PROXY_USER_HEADER": header})
    assert error.rule == "is a header that browsers or proxies use for something else, so that it names no user"


@pytest.mark.parametrize(
    "proxies", ["0.0.0.0", "::", "10.0.0.0/8", "*", "proxy", "10.0.0.5,", "224.0.0.1", "fe80::1%e"]
)
def test_only_addresses_of_machines_are_trusted(proxies: str) -> None:
    header = {"HEADROOM_DASHBOARD__PROXY_USER_HEADER": "X-User"}
    error = error_of(None, {**SERVERS, **header, "HEADROOM_DASHBOARD__TRUSTED_PROXIES": proxies})
    assert error.rule == f"'{proxies}' is not a list of addresses of machines, such as 10.0.0.5,fd00::5"


def test_sasl_without_a_password_is_an_error_that_names_the_setting() -> None:
    error = error_of(
        None,
        {
            **SERVERS,
            "HEADROOM_CLUSTER__SECURITY_PROTOCOL": "SASL_SSL",
            "HEADROOM_CLUSTER__SASL_MECHANISM": "PLAIN",
            "HEADROOM_CLUSTER__SASL_USERNAME": "me",
        },
    )
    assert "HEADROOM_CLUSTER__SASL_PASSWORD" in error.remedy


@pytest.mark.parametrize(
    "key", ["cluster.sasl_password", "cluster.ssl_key_password", "collect.jmx_password", "notify.slack.webhook_url"]
)
def test_a_secret_is_in_no_error_and_no_repr(settings_file: Path, key: str) -> None:
    section, _, name = key.rpartition(".")
    settings_file.write_text(f"[{section}]\n{name} = 192837465\n")
    assert "192837465" not in str(error_of(settings_file, SERVERS))
    value = "http://a/192837465"
    secure = {
        "HEADROOM_CLUSTER__SECURITY_PROTOCOL": "SASL_SSL",
        "HEADROOM_CLUSTER__SASL_MECHANISM": "PLAIN",
        "HEADROOM_CLUSTER__SASL_USERNAME": "me",
        "HEADROOM_CLUSTER__SASL_PASSWORD": "p",
    }
    settings = load_settings(None, {**SERVERS, **secure, env_name((section, name)): value})
    assert _value(settings, (section, name)) == value
    assert "192837465" not in repr(settings)


def test_amounts_may_carry_units(settings_file: Path) -> None:
    tables = ('[cluster]\nreplication_capacity = "1.5 MiB/s"', '[alerts]\nfinish_within = "1h30m"')
    settings_file.write_text("\n".join((*tables, '[elections]\nquiet_below = "5MB"')))
    settings = load_settings(str(settings_file), SERVERS)
    # 1.5 x 2^20 = 1,572,864; 3,600 + 1,800 = 5,400
    assert settings.cluster.replication_capacity == 1_572_864
    assert settings.alerts.finish_within == 5400
    assert settings.elections.quiet_below == 5_000_000


@pytest.mark.parametrize(("given", "percent"), [("0", 0), ("100", 100), ("12.5", 12.5), ('"7"', 7)])
def test_a_threshold_of_leader_imbalance_is_a_number_of_percent(
    settings_file: Path, given: str, percent: float
) -> None:
    settings_file.write_text(f"[alerts]\nleader_imbalance_percentage = {given}\n")
    assert load_settings(str(settings_file), SERVERS).alerts.leader_imbalance_percentage == percent


def test_a_percent_sign_is_refused_with_what_to_write(settings_file: Path) -> None:
    settings_file.write_text('[alerts]\nleader_imbalance_percentage = "10%"\n')
    error = error_of(settings_file, SERVERS)
    assert error.subject == f"alerts.leader_imbalance_percentage in {settings_file}"
    assert error.rule == f"'10%' {PERCENT}"
    assert error.remedy == "Write 10: without a sign."


def test_spark_settings_need_no_quotes(settings_file: Path) -> None:
    settings_file.write_text('[spark.conf]\nspark.executor.memory = "2g"\nspark.executor.cores = 2\n')
    conf = load_settings(str(settings_file), SERVERS).spark.conf
    assert conf == {"spark.executor.memory": "2g", "spark.executor.cores": "2"}


def test_without_a_cluster_the_error_names_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "headroom init" in error_of(None, {}).remedy
    assert read_settings(None, {}).store.path == "headroom-data"


def test_headroom_toml_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "headroom.toml").write_text('[cluster]\nname = "here"\n')
    monkeypatch.chdir(tmp_path)
    assert load_settings(None, SERVERS).cluster.name == "here"


@pytest.mark.parametrize(
    "path",
    ["s3a://bucket/a", "hdfs://host:9000/a:b@c", "abfss://box@account.dfs.core.windows.net/a", "/a:b@c", "a@b:c"],
)
def test_a_store_without_a_password_is_one(path: str) -> None:
    assert load_settings(None, {**SERVERS, "HEADROOM_STORE__PATH": path}).store.path == path


def test_a_place_of_the_store_with_a_password_is_in_no_error() -> None:
    error = error_of(None, {**SERVERS, "HEADROOM_STORE__PATH": "s3a://key:hidden@bucket/a"})
    assert "hidden" not in str(error)
    assert "deployment.md" in error.remedy


_DEEP = 20_000


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"[cluster\n",
        b"\xff\xfe\x00",
        b"[alerts]\nmaintenance = " + b"[" * _DEEP + b"]" * _DEEP,
        b"[spark.conf]\na = " + b"{a = " * _DEEP + b"1" + b"}" * _DEEP,
        b"[spark.conf]\n" + b".".join([b"a"] * 2_000) + b" = 1\n",
        b"[" + b".".join([b"a"] * 2_000) + b"]\n",
        b"[collect]\nport = " + b"9" * 10_000,
    ],
    ids=["missing", "no TOML", "no text", "deep list", "deep tables", "deep key", "deep section", "a long number"],
)
def test_a_file_that_cannot_be_read_is_one_error(settings_file: Path, content: bytes | None) -> None:
    if content is not None:
        settings_file.write_bytes(content)
    assert str(settings_file) in error_of(settings_file, SERVERS).subject


@pytest.mark.parametrize("text", ["[" * _DEEP, '{"a": ' * _DEEP, "9" * 10_000])
def test_a_variable_that_is_nested_too_deeply_is_one_error(text: str) -> None:
    for name in ("HEADROOM_ALERTS__MAINTENANCE", "HEADROOM_SPARK__CONF"):
        assert name in error_of(None, {**SERVERS, name: text}).subject


def test_the_commented_file_shows_the_defaults(settings_file: Path) -> None:
    settings_file.write_text(commented_toml("kafka", "broker1:9092"))
    assert load_settings(str(settings_file), {}) == load_settings(None, SERVERS)


def test_the_commented_file_is_still_right_with_every_default_uncommented(settings_file: Path) -> None:
    names = {doc.name for doc in setting_docs()}
    lines = [_uncommented(line, names) for line in commented_toml("kafka", "broker1:9092").splitlines()]
    settings_file.write_text("\n".join(lines))
    assert load_settings(str(settings_file), {}) == load_settings(None, SERVERS)


def _uncommented(line: str, names: set[str]) -> str:
    name, separator, value = line.removeprefix("# ").partition(" = ")
    return f"{name} = {value}" if separator and name in names and value else line


def test_the_page_of_settings_is_the_one_that_the_code_writes() -> None:
    page = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == markdown(), "write it anew: python -m headroom.cli.config.template > docs/configuration.md"


def test_every_key_has_a_meaning() -> None:
    assert [doc for doc in setting_docs() if not doc.meaning] == []


def test_a_password_file_is_read_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("p w\n")
    assert secret(None, str(file), "cluster.sasl_password_file") == "p w"
    assert secret("given", str(file), "cluster.sasl_password_file") == "given"
    assert secret(None, None, "cluster.sasl_password_file") is None


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_password_file_that_is_missing_or_empty_is_an_error(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_text(content)
    with pytest.raises(HeadroomError, match=r"cluster\.sasl_password_file"):
        secret(None, str(file), "cluster.sasl_password_file")


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"JMX_SSL": "true"}, "has no effect while collect.source is jolokia"),
        ({"HTTP_CERTFILE": "a.pem"}, "is missing: a certificate and its key go together"),
        ({"HTTP_PATH": "jolokia"}, "must begin with a slash"),
        ({"HTTP_TOKEN": "t", "HTTP_TOKEN_FILE": "f"}, "is set beside collect.http_token"),
        ({"HTTP_PASSWORD": "p", "HTTP_PASSWORD_FILE": "f"}, "is set beside collect.http_password"),
        ({"HTTP_USERNAME": "u", "HTTP_TOKEN": "t"}, "is set beside a token"),
    ],
)
def test_incompatible_http_settings_are_refused(given: dict[str, str], rule: str) -> None:
    environ = {f"HEADROOM_COLLECT__{name}": value for name, value in given.items()}
    error = error_of(None, {**SERVERS, "HEADROOM_COLLECT__SOURCE": "jolokia", **environ})
    assert error.rule == rule


def test_a_margin_that_would_not_end_the_alert_that_recommends_it_is_refused() -> None:
    margins = {"HEADROOM_ALERTS__MARGIN_RATIO": "1.04", "HEADROOM_ALERTS__EXIT_RATIO": "1.05"}
    error = error_of(None, {**SERVERS, **margins})
    assert error.subject.startswith("alerts.margin_ratio ")
    assert error.rule == "is less than alerts.exit_ratio (1.05): following the advice would not end the alert"
    equal = load_settings(None, {**SERVERS, **margins, "HEADROOM_ALERTS__MARGIN_RATIO": "1.05"})
    assert equal.alerts.margin_ratio == 1.05


def test_each_source_has_a_port_of_its_own() -> None:
    ports = [CollectSettings(source=source).metrics_port() for source in Source]
    assert (ports, CollectSettings(port=1234).metrics_port()) == ([9999, 8778, 9404], 1234)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"TOKEN": "t", "TOKEN_FILE": "f", "CHANNEL": "C0123456"}, "is set beside notify.slack.token"),
        ({"TOKEN": "t", "WEBHOOK_URL": "https://a/", "CHANNEL": "C0123456"}, "is set beside a token"),
        ({"TOKEN": "t", "CHANNEL": "#alerts"}, "must be the id of a channel, such as C0123456789, not its name"),
        ({"MENTION_CRITICAL": "<!here>"}, "has no effect without a token or a webhook_url"),
        *(
            (
                {"WEBHOOK_URL": "https://a/", "MENTION_WARNING": mention},
                "must be a mention in Slack's form, such as <!subteam^S0123456789>, <@U0123456789> or <!here>",
            )
            for mention in ("@anna", "<!here", "<@U1><@U2>", "<!here> anna", "<!here> ")
        ),
    ],
)
def test_incompatible_or_invalid_slack_settings_are_refused(given: dict[str, str], rule: str) -> None:
    environ = {f"HEADROOM_NOTIFY__SLACK__{name}": value for name, value in given.items()}
    assert error_of(None, {**SERVERS, **environ}).rule == rule


def test_a_section_within_another_is_read_from_the_file(settings_file: Path) -> None:
    settings_file.write_text('[notify]\ndigest_after = 3\n[notify.alertmanager]\nurls = "http://a:1, http://b:2/"\n')
    notify = load_settings(str(settings_file), {**SERVERS, "HEADROOM_NOTIFY__WEBHOOK__URL": "http://c/"}).notify
    assert (notify.digest_after, notify.alertmanager.instances()) == (3, ["http://a:1", "http://b:2"])
    assert notify.receivers() == ["alertmanager", "webhook"]
    assert [receiver.name for receiver in build_receivers(notify)] == notify.receivers()


WINDOW = '[[alerts.maintenance]]\ndays = ["sat", "sun"]\nat = "22:00"\nlasts = "4h"\n'


def test_maintenance_windows_are_read(settings_file: Path) -> None:
    settings_file.write_text(f'{WINDOW}{WINDOW}kinds = ["no_data"]\nsubjects = ["broker 2*"]\nclusters = ["a"]\n')
    first, second = load_settings(str(settings_file), SERVERS).alerts.maintenance
    assert first == MaintenanceWindow(("sat", "sun"), "22:00", 14_400)
    assert second == replace(first, kinds=("no_data",), subjects=("broker 2*",), clusters=("a",))


@pytest.mark.parametrize(
    ("wrong", "key", "rule"),
    [
        ({"days": '["saturday"]'}, "days", "must be a list of days: mon, tue, wed, thu, fri, sat, sun"),
        ({"days": "[]"}, "days", "must be a list of days: mon, tue, wed, thu, fri, sat, sun"),
        ({"days": '"sat"'}, "days", 'must be a list of texts, such as ["a", "b"]'),
        ({"days": ""}, "days", "is not set"),
        ({"at": '"24:00"'}, "at", "'24:00' is not a time of day"),
        ({"at": "22:00:00"}, "at", 'must be a time of day in UTC, such as "22:00"'),
        ({"lasts": '"long"'}, "lasts", f"'long' {TIME}"),
        ({"lasts": "true"}, "lasts", "'True' is not a time such as 4h"),
        ({"lasts": "0"}, "lasts", "must be more than nothing and at most a week"),
        ({"lasts": '"8d"'}, "lasts", "must be more than nothing and at most a week"),
        ({"lasts": "nan"}, "lasts", "must be more than nothing and at most a week"),
        (
            {"kinds": '["nodata"]'},
            "kinds",
            "must be a list of kinds of alerts: " + ", ".join(k.value for k in AlertKind),
        ),
        ({"subjects": "[2]"}, "subjects", 'must be a list of texts, such as ["a", "b"]'),
        ({"subject": '["a"]'}, "subject", "is not a setting"),
    ],
)
def test_a_wrong_key_of_a_window_is_an_error(settings_file: Path, wrong: dict[str, str], key: str, rule: str) -> None:
    values = {"days": '["sat"]', "at": '"22:00"', "lasts": "60", **wrong}
    table = "\n".join(f"{name} = {value}" for name, value in values.items() if value)
    settings_file.write_text(f"{WINDOW}[[alerts.maintenance]]\n{table}\n")
    error = error_of(settings_file, SERVERS)
    assert error.subject == f"{key} of window 2 of alerts.maintenance in {settings_file}"
    assert error.rule == rule


def test_by_default_there_is_no_receiver() -> None:
    assert build_receivers(load_settings(None, SERVERS).notify) == []


def test_the_origin_of_a_migration_has_settings_and_a_name_of_its_own(settings_file: Path) -> None:
    text = '[migration]\nprepare = "5m"\ngroups = "billing, audit"\n[migration.origin]\nbootstrap_servers = "o:1"\n'
    settings_file.write_text(text)
    migration = load_settings(str(settings_file), SERVERS).migration
    assert (migration.prepare, migration.group_names(), migration.origin.name) == (
        300.0,
        ["billing", "audit"],
        "origin",
    )
    settings_file.write_text('[cluster]\nname = "a"\n[migration.origin]\nname = "a"\nbootstrap_servers = "o:1"\n')
    error = error_of(settings_file, SERVERS)
    assert error.rule == "is a, as cluster.name is: the two clusters need names of their own"


def test_every_number_has_a_range() -> None:
    assert {key for key in all_keys() if type_of(key) in (int, float)} == set(RANGES)


def test_quantities_are_settings_with_a_range() -> None:
    assert set(RANGES) >= RATES | BYTES | DURATIONS | PERCENTAGES
