"""Benchmarks: each figure stands beside those of its alternatives, measured in the same run."""
