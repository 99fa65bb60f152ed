"""All that talks to Kafka: admin snapshots, metric sources, the collector, applying a plan, the embedded cluster."""
