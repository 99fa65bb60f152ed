"""Reassignments: plans in Kafka's format, and the state of a cluster that they start from."""
