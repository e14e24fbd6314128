"""YAML files as documents with places, comments and rules about files; which files describe one cluster."""
