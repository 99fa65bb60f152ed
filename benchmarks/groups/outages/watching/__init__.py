"""What group `outages` observes: fresh verdicts, notifications, Kafka's own failover."""
