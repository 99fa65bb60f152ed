"""Kafka's replication quota: its settings and samples, the load on it, and its throughput in the long run."""
