"""All Delta tables, with columns, units and keys."""
