"""Rules on how evenly brokers carry their load."""
