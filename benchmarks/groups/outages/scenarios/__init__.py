"""The faults of group `outages`."""
