"""Log directories: the logs that brokers report, and the time and progress of moves between directories."""
