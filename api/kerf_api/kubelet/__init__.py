"""`spec.kubelet` of an EC2NodeClass: a kubelet configuration as an open map that the API server does not look into."""
