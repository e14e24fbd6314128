"""What holds of each node and of its pods whatever is solved."""
