"""The tables of alerts: events, deliveries, and acknowledgements and silences."""

from __future__ import annotations

from headroom.schemas.tables.table import Table, columns_of

ALERT_EVENTS = Table(
    "alerts/events",
    "one state change of one alert",
    ("alert_id", "state", "tick_ms"),
    (),
    columns_of(
        ("alert_id", "STRING", "id of the alert, the same from pending to resolved"),
        ("kind", "STRING", "kind of the alert, as listed in docs/alerts.md: throttle_below_leader_write, ..."),
        ("severity", "STRING", "critical, warning or info"),
        ("state", "STRING", "pending, firing or resolved"),
        ("cluster", "STRING", "name of the watched cluster"),
        ("subject", "STRING", "subject of the alert, e.g. broker 2 as leader"),
        ("summary", "STRING", "summary in one sentence"),
        ("evidence", "STRING", "numbers of the finding, as JSON"),
        ("recommendation", "STRING", "recommended action, as JSON; action none if no action is known"),
        ("tick_ms", "BIGINT", "tick that changed the state, epoch milliseconds UTC"),
        ("event_ms", "BIGINT", "time of writing, epoch milliseconds UTC"),
    ),
)

ALERT_DELIVERIES = Table(
    "alerts/deliveries",
    "one step in the delivery of one event to one receiver",
    ("receiver", "event_key", "attempt", "state"),
    (),
    columns_of(
        ("receiver", "STRING", "receiver: log, slack, slack_webhook, alertmanager or webhook"),
        ("event_key", "STRING", "event of alerts/events: alert_id/tick_ms/state"),
        ("alert_id", "STRING", "id of the alert, the same from pending to resolved"),
        ("cluster", "STRING", "name of the watched cluster"),
        (
            "state",
            "STRING",
            "sending: attempt started; delivered: accepted by the receiver; failed: will be retried; dropped: not "
            "retried, the alert resolved too long ago; silenced: suppressed by a silence, a maintenance window or "
            "an acknowledgement",
        ),
        ("attempt", "BIGINT", "number of the attempt, from 1; 0: no attempt"),
        ("answer", "STRING", "response of the receiver, or cause of the failure, shortened; empty while sending"),
        (
            "reference",
            "STRING",
            "data for later messages on the alert, such as the message to reply to, as JSON; or empty",
        ),
        ("delivery_ms", "BIGINT", "time of the step, epoch milliseconds UTC"),
    ),
)

ALERT_MARKS = Table(
    "alerts/marks",
    "one acknowledgement, silence, or end of a silence",
    ("mark_id", "action"),
    (),
    columns_of(
        (
            "mark_id",
            "STRING",
            "id of the acknowledgement or silence; the end of a silence has the id of that silence",
        ),
        (
            "action",
            "STRING",
            "ack: acknowledgement of an alert; silence: receivers are not notified; unsilence: end of that silence",
        ),
        ("cluster", "STRING", "ack: cluster of the alert; silence: matching cluster; null: all"),
        ("kind", "STRING", "ack: kind of the alert; silence: matching kind; null: all"),
        (
            "subject",
            "STRING",
            "ack: subject of the alert; silence: matching subjects, with * for any text; null: all",
        ),
        ("alert_id", "STRING", "id of the acknowledged alert; null for silences"),
        ("severity", "STRING", "ack: severity at that time, above which it does not apply; null for silences"),
        ("starts_ms", "BIGINT", "start of the silence, epoch milliseconds UTC; null for acknowledgements"),
        ("ends_ms", "BIGINT", "planned end of the silence, epoch milliseconds UTC; null for acknowledgements"),
        ("by", "STRING", "author"),
        ("note", "STRING", "reason; or empty"),
        ("mark_ms", "BIGINT", "time of writing, epoch milliseconds UTC"),
    ),
)
