"""Receivers of alerts: Slack, Alertmanager, a webhook, the log."""
