"""Loads of brokers minute by minute: their bands, limits and scores, and what a lost broker would add to others."""
