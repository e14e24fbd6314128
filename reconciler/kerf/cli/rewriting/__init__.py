"""Conversion and defaulting of manifests, with their comments kept."""
