"""Kerf beside Karpenter's controller for AWS, on the same control plane, AWS and machines, under the same loads."""
