"""Rules on throttles."""
