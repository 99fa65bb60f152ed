"""Checks of settings, cluster, metrics and store."""
