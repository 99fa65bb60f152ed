"""How long throttled copies take, by a simulation of Kafka's quota."""
