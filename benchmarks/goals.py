"""Goals of Headroom on two cores: limits for figures of benchmarks/results.json."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "at most": operator.le,
    "at least": operator.ge,
    "under": operator.lt,
    "within": lambda value, limit: abs(value) <= limit,
}


@dataclass(frozen=True)
class Goal:
    """Limit of one figure.

    Attributes:
        sign: "at most", "at least", "under", or "within" (distance from 0).
        limit: limit in the figure's unit.
    """

    sign: str
    limit: float

    def is_met(self, value: float) -> bool:
        """Return whether a value is within the limit."""
        return bool(_COMPARISONS[self.sign](value, self.limit))


GOALS: dict[str, Goal] = {
    "switch_to_alert_s_median": Goal("at most", 1.6),
    "switch_to_alert_s_p95": Goal("at most", 2.8),
    "switch_to_alert_cold_s_max": Goal("at most", 4.5),
    "required_error_ratio_max": Goal("at most", 0.05),
    "death_to_throttle_alert_s_median": Goal("at most", 3.5),
    "death_to_throttle_alert_s_p95": Goal("at most", 5.5),
    "disk_full_alert_s_max": Goal("at most", 5),
    "disk_full_start_alert_s_max": Goal("at most", 30),
    "start_to_first_verdict_s": Goal("at most", 12),
    "gold_first_row_s": Goal("at most", 20),
    "gold_age_s_p95_2k": Goal("at most", 3),
    "finish_error_ratio_median": Goal("at most", 0.05),
    "finish_error_ratio_max": Goal("at most", 0.25),
    "finish_bias_ratio": Goal("within", 0.03),
    "finish_range_hit_ratio": Goal("at least", 0.8),
    "finish_range_width_ratio_median": Goal("at most", 0.3),
    "recommended_over_smallest_ratio_max": Goal("at most", 1.25),
    "memory_growth_ratio_per_hour": Goal("at most", 0.05),
    "watch_memory_bytes_idle": Goal("at most", 2.5e9),
    "watch_cores_idle": Goal("at most", 0.25),
    "watch_files_idle": Goal("at most", 300),
    "sustained_interval_s_200k": Goal("at most", 3.5),
    "ceiling_rows_ratio_200k": Goal("at least", 0.4),
    "history_path_s_200k": Goal("at most", 10),
    "peak_memory_bytes_200k": Goal("at most", 6e9),
    "sustained_interval_s_1000k": Goal("at most", 30),
    "peak_memory_bytes_1000k": Goal("under", 14e9),
    "cost_growth_ratio": Goal("at most", 1.2),
    "alert_path_s_2k": Goal("at most", 1.7),
    "balance_path_s_2k": Goal("at most", 4.2),
    "collect_4000_replicas_s": Goal("under", 0.4),
    "collect_broker_core_ratio": Goal("under", 0.03),
    "dashboard_query_s": Goal("under", 1),
    "alert_precision": Goal("at least", 1),
    "alert_recall": Goal("at least", 1),
    "alert_precision_large": Goal("at least", 1),
    "alert_recall_large": Goal("at least", 1),
    "alert_causes_doubled": Goal("at most", 0),
    "advice_runs_ratio": Goal("at least", 1),
    "advice_resolves_ratio": Goal("at least", 1),
    "advice_repaged": Goal("at most", 0),
    "advice_lowered": Goal("at most", 0),
    "plan_200k_s": Goal("at most", 5),
    "generated_bytes_over_kafka_generate_ratio": Goal("at most", 0.6),
    "plan_lists_differ": Goal("at most", 0),
    "plan_error_ratio_median": Goal("at most", 0.15),
    "plan_error_ratio_max": Goal("at most", 0.4),
    "batched_error_ratio_max": Goal("at most", 0.25),
    "plan_recommended_over_smallest_ratio_max": Goal("at most", 1.3),
    "switch_to_throttle_s_median": Goal("at most", 10),
    "reassign_crash_points_left_behind": Goal("at most", 0),
    "reassign_crash_points_foreign_changed": Goal("at most", 0),
    "trace_violations": Goal("at most", 0),
    "reassign_kill_left_behind": Goal("at most", 0),
    "reassign_kill_unfinished": Goal("at most", 0),
    "reassign_foreign_changed": Goal("at most", 0),
    "reassign_clean_s_max": Goal("at most", 10),
    "kill_lost": Goal("at most", 0),
    "kill_doubled": Goal("at most", 0),
    "receiver_down_undelivered": Goal("at most", 0),
    "power_cut_lost_durable": Goal("at most", 0),
    "power_cut_not_started": Goal("at most", 0),
    "damage_not_repaired": Goal("at most", 0),
    "upgrades_failed": Goal("at most", 0),
    "fault_scenarios": Goal("at least", 30),
    "fault_lost": Goal("at most", 0),
    "fault_doubled": Goal("at most", 0),
    "fault_false_critical": Goal("at most", 0),
    "fault_blind_s_max": Goal("at most", 5),
    "amounts_accepted_wrong": Goal("at most", 0),
    "busy_alert_s_p95": Goal("at most", 6),
    "busy_history_first_row_s": Goal("at most", 120),
    "demo_ok_busy_ratio": Goal("at least", 1),
    "demo_in_range_busy_ratio": Goal("at least", 0.9),
    "election_plan_200k_s": Goal("at most", 3),
    "imbalance_seen_ticks": Goal("at most", 2),
    "imbalance_after_batches_ratio": Goal("at most", 0.1),
    "balance_plan_200k_s": Goal("under", 5),
    "balance_plan_100k_s": Goal("at most", 2),
    "balance_in_band_100k_ratio": Goal("at least", 1),
    "balance_plan_1000_brokers_s": Goal("at most", 20),
    "balance_heavy_tail_s": Goal("at most", 3),
    "balance_left_over_greedy_ratio_median": Goal("at most", 1),
    "balance_left_over_greedy_ratio_max": Goal("at most", 1.02),
    "balance_bytes_over_greedy_ratio": Goal("at most", 1),
    "balance_second_plan_random_actions": Goal("at most", 0),
    "balance_second_plan_returns": Goal("at most", 0),
    "balance_growth_ratio": Goal("at most", 1.3),
    "balance_memory_bytes_200k": Goal("at most", 2e9),
    "balance_in_band_ratio": Goal("at least", 1),
    "balance_hard_goals_broken": Goal("at most", 0),
    "balance_bytes_over_known_ratio": Goal("at most", 1),
    "balance_bytes_over_bound_ratio": Goal("at most", 1.5),
    "balance_second_plan_actions": Goal("at most", 0),
    "balance_bytes_over_load_first_ratio": Goal("at most", 0.2),
    "balance_bytes_over_load_first_ratio_max": Goal("at most", 1),
    "balance_bytes_over_goal_by_goal_ratio": Goal("at most", 0.5),
    "balance_bytes_over_goal_by_goal_ratio_max": Goal("at most", 1),
    "balance_bytes_over_generate_ratio": Goal("at most", 0.1),
    "balance_bytes_over_generate_ratio_max": Goal("at most", 1),
    "balance_bytes_over_assigner_rate_ratio": Goal("at most", 0.2),
    "balance_bytes_over_assigner_rate_ratio_max": Goal("at most", 1),
    "balance_bytes_over_assigner_size_ratio": Goal("at most", 1),
    "balance_bytes_over_assigner_size_ratio_max": Goal("at most", 1),
    "balance_week_bytes_ratio": Goal("at most", 0.2),
    "balance_week_hours_ratio": Goal("at most", 1),
    "balance_week_returns": Goal("at most", 0),
    "balance_load_error_ratio_median": Goal("at most", 0.05),
    "balance_load_error_ratio_max": Goal("at most", 0.15),
    "balance_duration_error_ratio_median": Goal("at most", 0.15),
    "balance_elections_copied_replicas": Goal("at most", 0),
    "balance_command_s_200k": Goal("under", 30),
    "broker_load_path_s_200k": Goal("at most", 10),
    "test_minutes_fresh": Goal("at most", 22),
    "test_minutes_spark": Goal("at most", 4),
    "test_minutes_integration": Goal("at most", 12),
    "test_red_by_chance": Goal("at most", 0),
    "produce_p99_ratio_batched_over_all_at_once": Goal("at most", 0.5),
    "seeded_faults": Goal("at least", 40),
    "seeded_faults_missed": Goal("at most", 0),
}
