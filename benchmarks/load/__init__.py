"""Load on a real server process by real clients: ``python -m benchmarks.load --help``."""
