"""The alert rules: what is wrong in one tick."""
