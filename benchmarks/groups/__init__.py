"""The groups of benchmarks, one module or folder each."""
