"""The Spark jobs: record (history) and watch (alert path and gold)."""
