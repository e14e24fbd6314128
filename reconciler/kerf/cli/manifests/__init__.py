"""YAML files as documents with places, comments and rules about files."""
