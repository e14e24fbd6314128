"""What an EC2NodeClass selects, whether it can be launched from, and whether nodes have drifted from it."""
