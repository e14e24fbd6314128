"""A cluster as Karpenter 1.14.1 leaves it: who takes it over touches no node.

`predecessor.py` knows what that controller writes, `world.py` lets a sandbox begin with such objects, and
`differences.py` says what became of them.
"""
