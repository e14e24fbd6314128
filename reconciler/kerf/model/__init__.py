"""What a decision may depend on (Snapshot) and what it may ask for (Plan), as frozen values.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    memory.py        what one decision hands to the next      cluster.py  the cluster as the journal recorded it
    snapshot.py      all that a decision may depend on        noting.py   what a step has looked up in it
    plan.py          all that a decision may ask for          boundaries.py kept.py
    writes.py        how a changed object becomes a write
    overlays.py replicas.py claims.py mismatches.py ends.py backoff.py failures.py
    changes/         tables that follow the cluster, and the budgets of pods that rest on them
    aws/             what AWS has and is asked for
    kinds.py settings.py annotations.py instants.py gauges.py
    kubernetes/      objects of the cluster as values
"""
