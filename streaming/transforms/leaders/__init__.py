"""Leader balance and election plans as DataFrames."""
