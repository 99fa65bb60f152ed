"""The group ``proposals``: balance proposals carried out on real brokers, beside what they promised."""
