"""Loads that the collector reads apart from the ticks."""
