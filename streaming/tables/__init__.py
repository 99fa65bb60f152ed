"""Readers and writers of single tables."""
