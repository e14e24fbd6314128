"""What an operator sees: JSON logs, Prometheus metrics and Kubernetes events, by the names Karpenter's users know."""
