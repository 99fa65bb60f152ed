"""Log directories of brokers: reads them, and moves replicas between them."""
