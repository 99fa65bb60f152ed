"""Metrics over JMX RMI, which a small JVM reads for all brokers."""
