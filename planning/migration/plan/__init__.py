"""Plan of a migration: when partitions change to the target, who is left to read, and what forbids it."""
