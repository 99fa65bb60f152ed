"""Rules on migrations between clusters."""
