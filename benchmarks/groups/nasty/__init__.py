"""Large and nasty moves on real brokers: which alerts are true, which are missing, and whether their advice works."""
