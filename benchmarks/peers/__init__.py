"""Schedulers of others, built from their own modules and given the inputs of our benchmarks."""
