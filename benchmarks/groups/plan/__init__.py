"""The group ``plan``: time of plans, bytes of made plans, and lists beside those of Kafka's tool."""
