"""Devices by claim (dynamic resource allocation): which devices a pod's claims would get on a node, if it were placed
there.

Everything is worked out from the snapshot and held against what is planned so far; nothing is written. It is the
kube-scheduler that allocates; here is only found out where it can. Pods without claims never come here.
Source: scheduling reference §10.

    refused.py     the answer while claims are ignored
    selectors.py   the CEL expressions of classes and requests
    pools.py       published slices as pools of devices      templates.py   what nodes that are yet to come will publish
    usage.py       what of a device, and of the counters it shares, is taken
    asks.py        a claim's requests and constraints        search.py      devices for claims, one after the other
    claiming.py    pods' claims, and who holds what          inventory.py   what there is for one solve
    ledger.py      what a plan has given so far, to whom

Nodes in the making for pods with claims are seating/devices.py's.
"""
