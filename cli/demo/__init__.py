"""`headroom demo`."""
