"""Mutation check: bugs that the suite must find. Each is planted in a copy of the sources, and the suite runs there."""
