"""Large and difficult moves on real brokers: true and missing alerts, and the effect of their advice."""
