"""Migrations of topics to another cluster: plans, translated offsets of groups, and mirrors that are verified."""
