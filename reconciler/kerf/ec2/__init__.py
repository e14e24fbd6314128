"""What EC2's facts mean: instance types, prices, user data, fleet requests, drift, interruptions. Pure."""
