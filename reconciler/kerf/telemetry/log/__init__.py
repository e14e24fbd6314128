"""Log lines in JSON."""
