"""Prices of offerings, from AWS's answers and from the table that the release has."""
