"""Finish time of throttled copies, by a simulation of Kafka's replication quota."""
