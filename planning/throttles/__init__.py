"""Replication throttles: the rate that is enough, the options that set it, and the throttled replica lists."""
