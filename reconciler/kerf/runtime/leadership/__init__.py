"""The lease: who leads, beside another replica and beside Karpenter."""
