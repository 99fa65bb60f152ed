"""Conditions of alerts, goals of recommendations, and weekly maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass

# Names of the weekdays in maintenance windows.
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class MaintenanceWindow:
    """A weekly maintenance window: matching alerts are not sent to receivers.

    Attributes:
        days: weekdays of its start, in UTC: mon, tue, wed, thu, fri, sat, sun.
        at: start time, ``HH:MM`` in UTC.
        lasts: duration in seconds (or "4h"), at most a week.
        clusters: names of the matching clusters. Empty: all.
        kinds: matching alert kinds. Empty: all.
        subjects: matching alert subjects, with ``*`` for any text. Empty: all.
    """

    days: tuple[str, ...]
    at: str
    lasts: float
    clusters: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlertSettings:
    """Conditions of alerts and goals of recommendations.

    Attributes:
        hold_s: time for which a throttle must be too low before its alert fires, in seconds. After a leader switch the
            alert fires at once, because the write rates are known from before.
        resolve_s: time for which a throttle must be sufficient again before its alert resolves, in seconds.
        exit_ratio: hysteresis of alerts. A throttle is sufficient again from ``required x exit_ratio`` upwards; leaders
            are balanced again from ``threshold / exit_ratio`` downwards, and so are loads from the distance of the edge
            of their band, or their limit, divided by it.
        stalled_s: time without progress of an adding replica before ``reassignment_stalled`` fires, in seconds.
        no_data_s: time without a verdict before ``no_data`` fires, in seconds. For missing ticks 5 s are added.
        under_replicated_s: time for which replicas that are not being added must be out of the ISR before
            ``under_replicated`` or ``isr_shrink_during_move`` fires, in seconds. A normal broker restart is shorter.
        left_behind_s: time for which rates or throttled replica lists must remain without a reassignment before
            ``throttle_left_behind`` fires, in seconds.
        leader_imbalance_percentage: threshold of ``leader_imbalance``: share of a broker's preferred partitions that it
            does not lead but an election would return, in percent. 0: any partition, 100: never. A broker's own
            ``leader.imbalance.per.broker.percentage`` takes precedence.
        imbalance_s: duration of an imbalance before ``leader_imbalance`` fires, and of a preferred leader being down or
            out of sync before ``preferred_leader_unavailable`` fires, in seconds. If brokers rebalance leaders
            automatically, ``leader_imbalance`` waits for two of their checks.
        out_of_band_s: time for which the load of a broker must be out of its band before ``load_out_of_band`` fires, in
            seconds. Loads are evaluated every minute.
        hot_broker_s: time for which the load of a broker must be above its band and its limit before ``hot_broker``
            fires, in seconds.
        slow_broker_s: time for which a broker must have counted as slow before ``slow_broker`` fires, in seconds. It
            counts as slow after five slow minutes.
        at_risk_s: time for which the loss of a broker or rack must take another broker over its limit before
            ``capacity_at_risk`` fires, in seconds.
        slip_ratio: threshold of ``eta_slipping``: delay of the expected finish, as a ratio of the time that was left at
            the first estimate. Of ``migration_switch_off_plan``: delay of a switch, as a ratio of
            ``migration.prepare``. Of ``migration_mirror_behind``: delay of the mirror, as a ratio of the time that the
            origin takes.
        margin_ratio: safety factor of recommended throttles above the smallest sufficient rate.
        finish_within: desired time to the end of a move, in seconds (or "30m"); None: no deadline.
        bootstrap_servers: bootstrap servers in the commands of alerts. Empty: ``cluster.bootstrap_servers``.
        maintenance: weekly maintenance windows, in which matching alerts are not sent to receivers.
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
    out_of_band_s: float = 900.0
    hot_broker_s: float = 300.0
    slow_broker_s: float = 60.0
    at_risk_s: float = 300.0
    slip_ratio: float = 0.5
    margin_ratio: float = 1.2
    finish_within: float | None = None
    bootstrap_servers: str = ""
    maintenance: tuple[MaintenanceWindow, ...] = ()
