"""Delta tables without Spark: locations, queries, appends, compaction, damage."""
