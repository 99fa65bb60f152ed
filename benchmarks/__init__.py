"""Benchmarks of Headroom's goals on real brokers: ``python -m benchmarks.run``."""
