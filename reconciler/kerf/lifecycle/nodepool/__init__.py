"""The status of NodePools: readiness, resources, failures of launches and of registrations."""
