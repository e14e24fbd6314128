"""From pending pods to NodeClaims: when a batch is worked off, for which pods, and what is said about the rest."""
