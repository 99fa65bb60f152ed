"""Use cases on a cluster and its tables: a request in, a result out, progress to a callback; nothing is printed."""
