"""Loads that the collector reads beside the ticks."""
