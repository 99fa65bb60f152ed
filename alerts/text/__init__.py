"""Alerts as text for a terminal, and number formats."""
