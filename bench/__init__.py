"""Benchmarks: ratios of CPU time to native. `python -m bench.run --help`."""
