"""A NodeClaim from its deletion to the end of its instance: drain, volumes, finalizers."""
