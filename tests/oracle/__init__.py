"""The kube-scheduler's own plugins as an oracle: where pods can run, and where a queue of pods is bound.

binaries.py      builds the program (`tests/cluster/tools/oracle`), once for each Kubernetes version
client.py        starts the program, asks it about worlds, restarts it when it dies
test_oracle.py   small worlds, at least one for each plugin of the default profile that filters nodes
"""
