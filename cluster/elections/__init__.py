"""Leadership of a running cluster, and the execution of election plans."""
