"""Findings in the formats of people and of CI services."""
