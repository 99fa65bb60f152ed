"""Delivery of alert events to receivers: queues, retries, suppressions and message texts. No Spark, no tables."""
