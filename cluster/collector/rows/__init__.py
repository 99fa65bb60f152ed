"""Rows of tick messages, and their encoding."""
