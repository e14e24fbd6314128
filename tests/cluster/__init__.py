"""A real Kubernetes control plane for the tests: etcd, the API server, scheduler, controllers, and kwok as kubelets.

Tests that only need Kerf's own decisions use fakes. The tests in this folder need the real thing: admission, RBAC,
eviction against PodDisruptionBudgets, the real scheduler's opinion. See `control_plane.ControlPlane`.
"""
