"""Delta tables as the jobs read and write them: by Spark, or without it where that is faster."""
