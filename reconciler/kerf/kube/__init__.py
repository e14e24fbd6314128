"""The Kube port over HTTP: the official client configures and carries, msgspec decodes straight into typed values."""
