"""Group `elections`: planning time, produce latency and imbalance."""
