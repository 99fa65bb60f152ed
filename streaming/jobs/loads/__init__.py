"""Writers of the gold tables of load and lag."""
