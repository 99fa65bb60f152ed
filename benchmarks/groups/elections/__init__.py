"""Group `elections`."""
