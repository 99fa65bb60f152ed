"""Group `tests`: minutes of a test run, and tests that fail by chance."""
