"""From verdicts to alerts: sides, rules, recommendations, lifecycle, rendering. Decides; touches nothing."""
