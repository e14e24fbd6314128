"""The life of what exists: launch, registration, initialisation, drain, termination, garbage; pool and class status.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    lifecycle.py     the order of the steps of a pass
    termination/     a NodeClaim from its deletion to the end of its instance      nodeclass/  status of EC2NodeClasses
    garbage/         instances without a NodeClaim, NodeClaims without an instance
    nodepool/        status of NodePools
    nodeclaim/       a NodeClaim from its launch on: registration, initialization, consistency, liveness
    node_overlays.py shifted_zones.py
    view.py          what a step sees of the snapshot
"""
