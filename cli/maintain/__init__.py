"""`headroom maintain`."""
