"""Load balance of a cluster: scores of brokers, proposals of changes, and the price of each change."""
