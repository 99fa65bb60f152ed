"""Alerts from verdicts: inputs, rules, recommendations, lifecycle, text, delivery and metrics. No Spark, no tables."""
