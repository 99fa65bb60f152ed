"""The groups ``plan``, about times and made plans, and ``tiered``, about plans for topics with remote storage."""
