"""Group `scale`."""
