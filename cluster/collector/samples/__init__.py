"""Earlier samples of counters and leaders, kept from tick to tick."""
