"""Preferred leader elections in batches."""
