"""Preferred leader elections in small batches."""
