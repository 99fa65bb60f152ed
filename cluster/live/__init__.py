"""A running cluster: one way to read it, and one to change it."""
