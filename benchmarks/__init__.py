"""Benchmarks of Headroom's goals on real brokers: see README.md."""
