"""Batches of proposed changes under the limits of brokers, topics and throttles."""
