"""What Headroom must reach, measured on real brokers: ``python -m benchmarks.run``."""
