"""Warnings: what is allowed and unwise."""
