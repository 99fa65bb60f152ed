"""Group ``dashboard``: what the page costs, and whether it shows what the tables have."""
