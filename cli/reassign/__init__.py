"""`headroom reassign`."""
