"""What a pod asks of a node: labels, taints, ports, volumes, topology; and what DaemonSets take of it."""
