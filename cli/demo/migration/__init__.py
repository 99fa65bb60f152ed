"""`headroom demo --migration`."""
