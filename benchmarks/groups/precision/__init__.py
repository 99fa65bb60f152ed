"""Group `precision`."""
