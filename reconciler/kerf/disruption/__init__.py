"""Which nodes must or may be disrupted, and the commands that carry it out: interruption, expiration, drift,
consolidation.

Rooms and files, from the top; each imports only from those below it (import-linter holds that):

    disrupt.py       one pass over all methods               propose.py  consolidation, in a process of its own
    methods/         emptiness, drift, consolidation: from candidates to commands
    standing.py      why nodes stay, as events               commands.py commands under way
    announcing.py    events about nodes
    consolidation/   the search for moves, their savings and consequences
    share.py         the steps that simulations may take
    forced/          interruption, impairment, expiration, repair, surplus
    drift/           nodes that differ from their NodePool or EC2NodeClass
    simulation.py    where pods would be placed
    asking.py        the scheduler, as it is asked that
    candidates/      nodes that may be disrupted, their costs and budgets
    view.py command.py on_nodes.py
"""
