"""Room for the copies of plans in the log directories of brokers."""
