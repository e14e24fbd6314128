"""What is known, between what was observed and the snapshot of a decision."""
