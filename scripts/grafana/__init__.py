"""Dashboards for Grafana: builders of panels, and one module per dashboard."""
