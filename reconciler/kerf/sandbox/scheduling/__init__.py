"""A kube-scheduler with rules read anew, not Kerf's."""
