"""The consumer that passes a migration's switch."""

from headroom.routing.consumer.routed_consumer import RoutedConsumer

__all__ = ["RoutedConsumer"]
