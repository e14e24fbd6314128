"""A NodeClaim from its launch to its initialization, and what is checked while it lives."""
