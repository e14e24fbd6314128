"""Instances without a NodeClaim and NodeClaims without an instance."""
