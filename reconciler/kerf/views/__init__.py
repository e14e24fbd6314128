"""A snapshot as an operator reads it: values for a page and a terminal. It decides nothing and asks no server.

board.py      all views of one snapshot
cluster.py    nodes and NodePools: requests, free resources, price, age, and why each node stays
costs.py      the price per hour by NodePool, namespace and label
realised.py   the savings of removed nodes, less the price of their replacements
blocked.py    the price of nodes that pods block, by PodDisruptionBudget and owner
calendar.py   the windows of disruption budgets in the next days
upcoming.py   disruption: in progress, due and blocked, with the budgets of each NodePool
order.py      filters and orders of the list of nodes
redaction.py  the objects for a reader of some namespaces only
"""
