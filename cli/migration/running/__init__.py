"""Commands of migrations under way: run, status, shield and cancel."""
