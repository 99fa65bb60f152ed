"""Execution of a reassignment plan: batch by batch, throttled, journalled, and resumable after a crash at any step."""
