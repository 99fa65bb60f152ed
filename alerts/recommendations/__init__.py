"""Recommendations of alerts, with the commands that apply them."""
