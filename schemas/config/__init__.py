"""All settings, with defaults and units."""
