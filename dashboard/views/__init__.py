"""What the page shows: each view is a list of blocks, of which page, API and files are made."""
