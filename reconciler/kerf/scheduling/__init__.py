"""From pods, nodes and offerings to placements, new nodes and refusals. Pure; knows nothing of why it is asked.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    fixes.py            edits are tried before they are offered
    solve.py            the scheduler: a snapshot and pods in, a solution out
    strategies.py       the rounds of a solve, and other ways to go about it     refusals/   why a pod has no place
    pack.py             the pods of a round that need new nodes, by NodePool
    improving/          a cheaper answer than the first     seating/   pods that are put on new nodes before all others
    packing/            new nodes for pods, by price        mismatch/  nodes that come up other than planned
    placing/            to which node, or to which NodePool and domains of a new one, each pod is placed
    devices/            devices by claim                    context.py a snapshot as the solver reads it
    nodes/              nodes that exist or are on their way, as places for pods
    topology/           the rule of topology constraints, and what is counted for it
    answers/            what a solve answers    facts/  what holds of nodes and pods whatever is solved
    offerings/          what new nodes can be: NodePools, instance types, prices, reservations
    work.py             the steps of a pass, and their bound
"""
