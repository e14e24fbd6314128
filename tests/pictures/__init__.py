"""Pictures of the documentation that are made from real runs."""
