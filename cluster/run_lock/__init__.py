"""A lock that all processes see which change the runs of one Kafka cluster: the leadership of a consumer group."""
