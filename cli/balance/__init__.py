"""``headroom balance``: scores of brokers, and proposals of changes that balance their load."""
