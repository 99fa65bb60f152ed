"""The load on replication throttles, and the rate that is enough."""
