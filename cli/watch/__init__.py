"""`headroom watch`, `collect` and `run`."""
