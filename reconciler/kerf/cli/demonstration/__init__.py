"""The demo: a cluster in memory, and its picture on a terminal."""
