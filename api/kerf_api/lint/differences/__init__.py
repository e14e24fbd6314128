"""What a change of a manifest means for nodes."""
