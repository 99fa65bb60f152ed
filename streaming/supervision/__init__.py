"""Jobs and JVMs that fail: why, how often, and starting them again."""
