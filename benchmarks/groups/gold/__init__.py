"""Group `gold`: time until rows are in the gold tables."""
