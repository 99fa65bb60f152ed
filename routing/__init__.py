"""Clients of Kafka that pass a migration's switch: a library for applications, without Spark."""
