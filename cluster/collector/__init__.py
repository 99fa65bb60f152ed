"""The collector: one snapshot of the cluster per tick, written to the ticks topic."""
