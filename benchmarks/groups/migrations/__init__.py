"""Migrations of topics under faults, and what a leader switch loses with ``acks=1``."""
