"""Files of a Delta table one by one: actions of its log, data files, and their sync to the disk."""
