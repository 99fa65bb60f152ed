"""Clients of Kafka that pass a migration's switch: a library for applications, without Spark."""

from headroom.routing.consumer import RoutedConsumer
from headroom.routing.producer import RoutedProducer

__all__ = ["RoutedConsumer", "RoutedProducer"]
