"""Which nodes must or may go, and the commands that carry it out: interruption, expiration, drift, consolidation."""
