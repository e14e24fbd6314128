"""Tests of the views of a snapshot, and of the page."""
