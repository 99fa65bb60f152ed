"""Making a reassignment plan from a request such as "drain broker 3"."""
