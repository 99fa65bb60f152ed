"""Delivery of alert events: who is told, in which words, and that none is lost or told twice. No Spark, no tables."""
