"""Search for the changes that bring brokers into their bands, and their order."""
