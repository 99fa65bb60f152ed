"""Earlier samples of counters and logs, kept from tick to tick."""
