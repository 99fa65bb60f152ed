"""Reads the two clusters of a migration: topics, offsets, consumer groups and records; and commits offsets."""
