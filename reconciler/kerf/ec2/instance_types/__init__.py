"""Instance types as Karpenter's catalogue has them: labels, capacity, overhead."""
