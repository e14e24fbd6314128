"""What a pod asks of a node: labels, taints, ports, volumes, topology; and the resources that DaemonSets use on it."""
