"""Plans: simulation of a snapshot in the sandbox, with the real controller and a change to the manifests.

forecast.py      two simulations of a snapshot, with a change and without, and their difference
estimates.py     the same without the roll-out, in one solve
risks.py         facts about the final state that an operator may want to know
outcomes.py      the result of a simulation: nodes, pods, cost and duration, as values
lives.py         one simulation (a life): the controller reconciles until the cluster is stable
worlds.py        a sandbox with the state of a snapshot
owners.py        workloads for pods whose controllers are missing in a snapshot
machines.py      instances that a snapshot does not list
clouds.py        AWS as recorded in the snapshot
approvals.py     the digests that approve the change
waits.py         the times that launches and terminations take in this cluster
changes.py       manifests to apply or delete
"""
