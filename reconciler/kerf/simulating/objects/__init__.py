"""Objects of a scenario that cannot have an effect in its world.

pods.py    labels and PriorityClasses that pods name
pools.py   NodePools that can never have a node
unused.py  kinds that are not simulated, PodDisruptionBudgets without a pod
"""
