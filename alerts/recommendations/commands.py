"""Shell commands that apply a recommendation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headroom.alerts.inputs.throttle_status import MovingPartition
from headroom.planning.elections.election_file import request_json
from headroom.planning.reassignments.plan import TargetAssignment, plan_text
from headroom.planning.throttles.rate_options import rate_options
from headroom.schemas.keys import Role, TopicPartition
from headroom.schemas.text import shell_quoted
from headroom.schemas.text.amounts import file_moment

PLAN_FILE = "headroom-move.json"
# A silence needs a reason; whoever copies the command may write a better one.
_NOTE = "seen; being worked on"
ELECTIONS_FILE = "headroom-elections.json"


def headroom_apply(
    throttle_bytes_per_s: int, brokers: Sequence[int], config: str | None, raise_only: bool = True
) -> str:
    """Return Headroom's own command that sets a rate on brokers and reads it back until it is in force.

    Args:
        throttle_bytes_per_s: rate of both roles.
        brokers: broker ids.
        config: configuration file; None to search for it.
        raise_only: whether to keep higher rates, and brokers without a rate, as they are.
    """
    listed = ",".join(str(b) for b in brokers)
    only = " --raise-only" if raise_only else ""
    rate = " ".join(rate_options({"--rate": throttle_bytes_per_s}))
    return f"headroom throttle apply{config_option_of(config)} {rate} --brokers {listed}{only} --execute"


def kafka_configs(
    throttle_bytes_per_s: int, broker: int, bootstrap_servers: str, roles: Collection[Role] = tuple(Role)
) -> str:
    """Return Kafka's command that sets throttle rates of one broker."""
    keys = [f"{role.value}.replication.throttled.rate" for role in Role if role in roles]
    rates = ",".join(f"{key}={throttle_bytes_per_s}" for key in keys)
    return (
        f"kafka-configs.sh --bootstrap-server {shell_quoted(bootstrap_servers)} --alter --entity-type brokers "
        f"--entity-name {broker} --add-config {rates}"
    )


def kafka_reassign(throttle_bytes_per_s: int, partitions: Sequence[MovingPartition], bootstrap_servers: str) -> str:
    """Return Kafka's command that changes the throttle of a running move, with the plan file that it needs.

    Some of the partitions are enough: the tool reads all running reassignments and sets the rate on every broker that
    takes part in them.
    """
    return (
        f"{_write_plan(partitions)} && kafka-reassign-partitions.sh --bootstrap-server "
        f"{shell_quoted(bootstrap_servers)} --reassignment-json-file {PLAN_FILE} --execute --additional "
        f"--throttle {throttle_bytes_per_s}"
    )


def cancel(partitions: Sequence[MovingPartition], bootstrap_servers: str) -> str:
    """Return the command that cancels the move of these partitions and keeps the throttle of the others."""
    return f"{_write_plan(partitions)} && {_kafka_cancel(bootstrap_servers)}"


def cancel_all(config: str | None, bootstrap_servers: str) -> str:
    """Return the command that cancels all reassignments running at that time."""
    return f"headroom reassignments{config_option_of(config)} --file {PLAN_FILE} && {_kafka_cancel(bootstrap_servers)}"


def _kafka_cancel(bootstrap_servers: str) -> str:
    return (
        f"kafka-reassign-partitions.sh --bootstrap-server {shell_quoted(bootstrap_servers)} "
        f"--reassignment-json-file {PLAN_FILE} --cancel --preserve-throttles"
    )


def headroom_elections(config: str | None) -> str:
    """Return Headroom's own command that elects preferred leaders in small batches and waits after each."""
    return changing_command(["elections"], config)


def headroom_balance_propose(brokers: Sequence[int], minute_ms: int, config: str | None) -> str:
    """Return Headroom's own command that writes the batches of the actions that bring brokers into their bands.

    Args:
        brokers: broker ids.
        minute_ms: time that names the folder of the batches, epoch milliseconds: batches of an earlier proposal stay.
        config: configuration file; None to search for it.
    """
    listed, made = ",".join(map(str, brokers)), file_moment(minute_ms)
    return f"headroom balance propose{config_option_of(config)} --until-in-band {listed} --dir headroom-balance-{made}"


def headroom_balance_propose_all(config: str | None) -> str:
    """Return Headroom's own command that proposes all changes that balance the load."""
    return f"headroom balance propose{config_option_of(config)}"


def headroom_balance_what_if(lost: str, config: str | None) -> str:
    """Return Headroom's own command that shows the loads after a loss.

    Args:
        lost: what is lost: ``broker 3`` or ``rack a``.
        config: configuration file; None to search for it.
    """
    kind, _, name = lost.partition(" ")
    change = f"lose:{name}" if kind == "broker" else f"lose-rack:{name}"
    return f"headroom balance{config_option_of(config)} --what-if {shell_quoted(change)}"


def headroom_check(config: str | None) -> str:
    """Return Headroom's own command that lists what cannot be read, with the remedies."""
    return f"headroom check{config_option_of(config)}"


def headroom_alerts_ack(alert_id: str, config: str | None) -> str:
    """Return Headroom's own command that acknowledges an alert."""
    return f"headroom alerts ack {shell_quoted(alert_id)}{config_option_of(config)}"


def headroom_alerts_silence(cluster: str, kind: str, subject: str, config: str | None) -> str:
    """Return Headroom's own command that silences the alerts of a kind on a subject for an hour."""
    options = f"--cluster {shell_quoted(cluster)} --kind {shell_quoted(kind)} --subject {shell_quoted(subject)}"
    return f"headroom alerts silence {options} --for 1h --note {shell_quoted(_NOTE)}{config_option_of(config)}"


def headroom_throttle_show(config: str | None) -> str:
    """Return Headroom's own command that shows the rates and lists in force, and why any are unknown."""
    return f"headroom throttle show{config_option_of(config)}"


def headroom_clear(config: str | None) -> str:
    """Return Headroom's own command that removes brokers' rates and all lists, and reads back until they are gone."""
    return changing_command(["throttle clear"], config)


def headroom_reassign_run(
    plan: str, rates: Mapping[str, int | None], config: str | None, fingerprint: str | None = None
) -> str:
    """Return Headroom's own command that carries out a plan, and elects the leaders that it changes.

    Args:
        plan: plan file, or the option with the folder of its batches, quoted for a shell.
        rates: rates by option, bytes per second; options with None are left out.
        config: configuration file; None to search for it.
        fingerprint: fingerprint that the plan must have; any if None.
    """
    words = ["reassign run", plan, *rate_options(rates)]
    words += [] if fingerprint is None else ["--fingerprint", fingerprint]
    return changing_command(words, config)


def headroom_reassign_clean(run_ids: Sequence[str], config: str | None) -> str:
    """Return Headroom's own command that removes exactly what runs of plans have set; of all runs if none is named."""
    return changing_command(["reassign clean", *map(shell_quoted, run_ids)], config)


def headroom_reassign_runs(config: str | None) -> str:
    """Return Headroom's own command that lists the runs of plans, and which of them is running."""
    return f"headroom reassign runs{config_option_of(config)}"


def headroom_migration_run(
    topics: Sequence[str], migration: str, method: str, options: Sequence[str], config: str | None
) -> str:
    """Return Headroom's own command that carries out a migration, or continues it.

    Args:
        topics: topics of the migration.
        migration: its name.
        method: its method.
        options: further options.
        config: configuration file; None to search for it.
    """
    names = ["--name", shell_quoted(migration), "--method", method]
    return changing_command(["migration run", *map(shell_quoted, topics), *names, *options], config)


def kafka_topic_setting(topic: str, key: str, value: str, bootstrap_servers: str) -> str:
    """Return Kafka's command that sets one setting of a topic."""
    return (
        f"kafka-configs.sh --bootstrap-server {shell_quoted(bootstrap_servers)} --alter --entity-type topics "
        f"--entity-name {shell_quoted(topic)} --add-config {key}={value}"
    )


def kafka_clear_rates(broker: int, keys: Sequence[str], bootstrap_servers: str) -> str:
    """Return Kafka's command that removes settings of one broker, all of which have to be set."""
    return _kafka_delete("brokers", str(broker), keys, bootstrap_servers)


def kafka_clear_lists(topic: str, roles: Collection[Role], bootstrap_servers: str) -> str:
    """Return Kafka's command that removes throttled replica lists of one topic, all of which have to be set."""
    keys = [f"{role.value}.replication.throttled.replicas" for role in Role if role in roles]
    return _kafka_delete("topics", topic, keys, bootstrap_servers)


def kafka_elect(file: str, bootstrap_servers: str) -> str:
    """Return Kafka's command that elects the preferred leaders of the partitions that a file names."""
    return (
        f"kafka-leader-election.sh --bootstrap-server {shell_quoted(bootstrap_servers)} --election-type preferred "
        f"--path-to-json-file {shell_quoted(file)}"
    )


def kafka_reset_offsets(group: str, file: str, bootstrap_servers: str) -> str:
    """Return Kafka's command that sets the offsets of a group that a file has."""
    return (
        f"kafka-consumer-groups.sh --bootstrap-server {shell_quoted(bootstrap_servers)} --group {shell_quoted(group)} "
        f"--reset-offsets --from-file {shell_quoted(file)} --execute"
    )


def kafka_elect_these(partitions: Sequence[TopicPartition], bootstrap_servers: str) -> str:
    """Return Kafka's command that elects the preferred leaders of partitions, with the file that it needs."""
    written = f"echo {shell_quoted(request_json(partitions))} > {ELECTIONS_FILE}"
    return f"{written} && {kafka_elect(ELECTIONS_FILE, bootstrap_servers)}"


def _kafka_delete(entity_type: str, name: str, keys: Sequence[str], bootstrap_servers: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server {shell_quoted(bootstrap_servers)} --alter --entity-type {entity_type} "
        f"--entity-name {shell_quoted(name)} --delete-config {','.join(keys)}"
    )


def _write_plan(partitions: Sequence[MovingPartition]) -> str:
    plan = plan_text(TargetAssignment(TopicPartition(p.topic, p.partition), tuple(p.target)) for p in partitions)
    return f"echo {shell_quoted(plan.rstrip())} > {PLAN_FILE}"


def changing_command(words: Sequence[str], config: str | None) -> str:
    """Return Headroom's own command that changes the cluster.

    Args:
        words: its words after ``headroom``, quoted for a shell, without settings file and ``--execute``.
        config: configuration file; None to search for it.
    """
    return f"headroom {' '.join(words)}{config_option_of(config)} --execute"


def config_option_of(config: str | None) -> str:
    """Return the option that names the settings file, as the end of a command line; empty for the default one."""
    return f" --config {shell_quoted(config)}" if config else ""
