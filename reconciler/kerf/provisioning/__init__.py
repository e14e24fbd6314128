"""From pending pods to NodeClaims: when a batch is processed, for which pods, and the refusals of the rest."""
