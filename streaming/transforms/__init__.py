"""DataFrame to DataFrame: the same for a live batch and for a replay of stored ticks."""
