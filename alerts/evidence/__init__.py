"""Evidence of findings: typed in rules and grouping, JSON in stored events."""
