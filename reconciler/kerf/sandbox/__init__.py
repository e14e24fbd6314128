"""The same ports as the real world, in memory: an API server, a scheduler, kubelets, EC2 with weather, virtual time."""
