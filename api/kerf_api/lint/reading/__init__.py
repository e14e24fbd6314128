"""Manifests as the linter reads them, workloads too; placeholders in texts."""
