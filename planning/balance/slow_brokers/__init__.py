"""Detection of slow brokers by their log flush times."""
