"""Groups of benchmarks, one module or package each."""
