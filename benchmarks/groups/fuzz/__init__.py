"""Messages and texts of every kind, as they should not be, through all that reads them."""
