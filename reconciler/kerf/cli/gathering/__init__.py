"""Where manifests come from: files, folders, Git, rendered charts and overlays."""
