"""Journal of the changes that commands make: its rows, the lock for one run at a time, and owners of throttles."""
