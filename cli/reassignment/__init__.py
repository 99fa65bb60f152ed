"""`headroom reassignments`."""
