"""A cheaper answer than the first: fewer nodes, other nodes, pods that limits left over, and the bound below."""
