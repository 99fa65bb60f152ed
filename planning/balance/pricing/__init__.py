"""Prices of proposed changes: bytes, throttle, duration, and the risk of a leader switch."""
