"""Faults that only tests on real brokers catch."""

from __future__ import annotations

from benchmarks.groups.seeded_faults.fault import SeededFault, Tier

_INTEGRATION = Tier.INTEGRATION
_TESTS = "tests/integration"

INTEGRATION_FAULTS = (
    SeededFault(
        name="reader-of-dead-gateway",
        layer="cluster",
        what="After the JVM that reads JMX was killed, brokers are read by the reader of the dead one.",
        path="cluster/metrics/rmi/jmx.py",
        old="cached[:2] != (endpoint, self._gateway.process_id)",
        new="cached[0] != endpoint",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_collector.py::test_a_gateway_that_died_is_started_again",),
    ),
    SeededFault(
        name="past-moves-count-as-activity",
        layer="cluster",
        what="The alert partition is followed from its beginning, so that a move of long ago ends the quiet.",
        path="cluster/collector/ticks_topic.py",
        old="consumer.seek_to_end(partition)",
        new="consumer.seek_to_beginning(partition)",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_activity.py",),
    ),
    SeededFault(
        name="stranger-killed-by-pid",
        layer="cluster",
        what="cluster down kills any process that has got the process id of an ended broker.",
        path="cluster/embedded/processes.py",
        old="if str(files.properties) in _command_line(process):",
        new="if _command_line(process):",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_embedded_cluster.py::test_down_does_not_touch_a_process_that_only_has_a_brokers_pid",),
    ),
    SeededFault(
        name="dead-broker-without-throttle",
        layer="cluster",
        what="A broker that is down is taken for one that is up.",
        path="cluster/live/throttle_state.py",
        old="return registered is not None and registered.alive",
        new="return registered is not None",
        tier=_INTEGRATION,
        tests=(
            f"{_TESTS}/test_throttle_commands.py::test_a_broker_that_is_down_is_skipped_and_returns_with_its_old_rate",
        ),
    ),
    SeededFault(
        name="own-rate-taken-for-default",
        layer="cluster",
        what="A run takes the own rates of brokers for the default of the cluster, and does not restore them.",
        path="cluster/live/live_control.py",
        old="return RateInForce(rate if own else None, None if own else rate)",
        new="return RateInForce(None, rate)",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_reassign.py::test_a_plan_is_run_to_its_end_and_rolled_back",),
    ),
    SeededFault(
        name="log-dirs-rate-not-applied",
        layer="cluster",
        what="The rate of moves between log directories is never set, because the snapshot does not have it.",
        path="cluster/live/live_control.py",
        old="            rates_by_role[LogDirsRate(broker)] = _in_force(throttles, DirectoryRole.LOG_DIRS)\n",
        new="",
        tier=_INTEGRATION,
        tests=(
            f"{_TESTS}/test_directory_moves.py::test_a_run_killed_while_a_log_is_copied_is_resumed_and_rolled_back",
        ),
    ),
    SeededFault(
        name="plan-without-log-directories",
        layer="operations",
        what="A plan of a live cluster does not read the log directories, so that free space is not checked.",
        path="operations/plans/live_state.py",
        old="return _with_log_dirs(with_busy_hour(reader.state(names), busy_hour), reader)",
        new="return with_busy_hour(reader.state(names), busy_hour)",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_plan.py",),
    ),
    SeededFault(
        name="kafka-options-logged",
        layer="streaming",
        what="A log line that was left in prints the options of the ticks topic, with the password.",
        path="streaming/pipeline.py",
        old="        self._kafka_options = lambda: kafka_options(config.ticks, config.password())\n",
        new="        self._kafka_options = lambda: kafka_options(config.ticks, config.password())\n"
        '        log.warning("reads ticks with %s", self._kafka_options())\n',
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_canary.py",),
    ),
    SeededFault(
        name="sigterm-ends-demo-at-once",
        layer="cli",
        what="SIGTERM ends the demo without its cleaning, and with another exit code than Ctrl-C.",
        path="cli/demo/command.py",
        old="    signal.signal(signal.SIGTERM, signal.default_int_handler)\n",
        new="",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_demo_interrupted.py::test_sigterm_leaves_nothing_running_and_nothing_behind",),
        old_tests=(f"{_TESTS}/test_demo.py::test_sigterm_leaves_nothing_running_and_nothing_behind",),
    ),
    SeededFault(
        name="alerts-as-text",
        layer="alerts",
        what="Posts to receivers have a content type that Alertmanager does not accept.",
        path="alerts/delivery/http.py",
        old='JSON = "application/json; charset=utf-8"',
        new='JSON = "text/json; charset=utf-8"',
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_alertmanager.py",),
    ),
    SeededFault(
        name="alerts-not-restored",
        layer="streaming",
        what="A watch reads the stored alerts at its start, but does not restore them.",
        path="streaming/jobs/alert_path.py",
        old="self._engine.restore(self._log.last_events())",
        new="self._log.last_events()",
        tier=_INTEGRATION,
        tests=(f"{_TESTS}/test_watch.py::test_an_alert_of_a_watch_that_was_killed_is_ended_by_the_next_one",),
    ),
)
