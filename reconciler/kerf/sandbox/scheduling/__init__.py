"""A kube-scheduler with a second implementation of the rules, not Kerf's."""
