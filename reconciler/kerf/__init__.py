"""The controller: observe the cluster and AWS, decide purely, act through ports. `docs/architecture.md` has the map."""
