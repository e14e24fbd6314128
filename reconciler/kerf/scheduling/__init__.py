"""From pods, nodes and offerings to placements, new nodes and refusals. Pure; knows nothing of why it is asked."""
