"""EC2: machines, capacity, prices, its account's limits."""
