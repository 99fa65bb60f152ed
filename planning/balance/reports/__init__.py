"""Scores of brokers, effects of one action, and prices of prefixes, for people to decide by."""
