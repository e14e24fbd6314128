"""Our scheduler beside Karpenter's own on small worlds: whatever Karpenter places we place, at no higher price.

A seed is a world: workloads, NodePools, nodes, volumes and a catalogue as plain manifests, with some features drawn
from a table. Both sides get the same manifests; the referee says what either answer breaks.

    features.py   the table: what draws a feature, and how a world shows it
    wishes.py, supply.py    what is drawn: of pods; of nodes, NodePools and volumes
    draft.py      a world under construction
    generator.py  a seed -> a world
    ours.py       a world -> our answer
    judge.py      both answers, held against each other
    shrink.py     a world with a difference, made smaller
    explained.py  the differences that are known
    campaign.py   many seeds, and the table
"""
