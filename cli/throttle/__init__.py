"""`headroom throttle`."""
