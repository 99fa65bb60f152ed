"""Metrics of brokers, by JMX, Jolokia or jmx_exporter."""
