"""Objects of the cluster as frozen values."""
