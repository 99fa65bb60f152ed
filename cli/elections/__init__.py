"""`headroom elections`."""
