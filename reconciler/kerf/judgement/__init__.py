"""What may be said of one node: where it stands, what would end it, what holds it, and when it may go."""
