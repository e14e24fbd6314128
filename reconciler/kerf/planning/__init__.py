"""What would happen: a snapshot comes to life in the sandbox, with the real controller in it and a change applied.

forecast.py      two lives of a snapshot, with a change and without; what differs
estimates.py     the same without the roll-out, in one solve
risks.py         facts about the end that an operator may want to know
outcomes.py      a life and its nodes, pods, cost and duration, as values
lives.py         one life: the controller at work until nothing happens any more
worlds.py        a world of the sandbox as a snapshot has it
owners.py        workloads for pods whose controllers a snapshot does not have
machines.py      instances that a snapshot does not list
clouds.py        AWS as the snapshot knows it
approvals.py     the digests by which the change is approved
waits.py         how long starts and ends take in this cluster
changes.py       manifests that are applied or deleted
"""
