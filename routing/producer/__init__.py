"""The producer that passes a migration's switch."""

from headroom.routing.producer.routed_producer import RoutedProducer

__all__ = ["RoutedProducer"]
