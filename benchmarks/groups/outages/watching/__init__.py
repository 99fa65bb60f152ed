"""Observations of group `outages`: fresh verdicts, notifications, Kafka's failover."""
