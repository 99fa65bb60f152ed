"""`headroom throttle show`: who needs the throttles, and what is left behind."""
