"""Headroom: watches Kafka during live partition reassignments. Its layers are linked here."""
