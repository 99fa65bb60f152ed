"""Rules on replicas that are out of the ISR."""
