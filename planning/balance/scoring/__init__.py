"""Scores of brokers by goal, and acceptance of actions by all goals together."""
