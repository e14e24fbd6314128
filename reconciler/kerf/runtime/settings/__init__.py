"""Settings: flags, variables, their defaults and how they are read."""
