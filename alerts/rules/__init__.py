"""Alert rules: each kind has one rule, in a file with its name, and in the list of ``alerts.rules.catalogue``."""
