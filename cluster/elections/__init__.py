"""Who leads what in a running cluster, and carrying out a plan of elections."""
