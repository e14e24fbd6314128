"""What only shows when manifests stand side by side."""
