"""Pages of docs/reference that are rendered from the code."""
