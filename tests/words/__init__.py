"""Phrases that Kerf's texts do not use: `python -m tests.words` reports each place where one is."""
