"""Manifests written anew with their comments: converted, or with defaults filled in."""
