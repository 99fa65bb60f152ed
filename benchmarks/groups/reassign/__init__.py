"""The group ``reassign``: planned moves on real brokers, and runs of plans that are switched, killed and cleaned."""
