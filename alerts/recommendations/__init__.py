"""Recommendations of alerts, and the commands that carry them out."""
