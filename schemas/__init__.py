"""Contracts of Headroom: tick messages, Delta tables, findings, settings and errors. Standard library only."""
