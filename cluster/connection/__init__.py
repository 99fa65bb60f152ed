"""Connections to brokers: options, failover, and why one is refused."""
