"""Actions of a plan, performed through the ports, and their results."""
