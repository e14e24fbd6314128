"""How tables and what rests on them follow the cluster, without being built again."""
