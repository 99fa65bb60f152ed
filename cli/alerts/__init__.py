"""`headroom alerts`: active alerts, acknowledgements, silences."""
