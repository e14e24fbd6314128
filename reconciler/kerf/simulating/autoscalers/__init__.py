"""Models of other autoscalers: other methods of consolidation for Kerf's controller. Kerf's authors wrote them.

All the rest is Kerf's in each of them: scheduler, candidates, commands, launches and drains. So a comparison shows the
effect of the choice of nodes alone.

models.py        the models by name, with their limits and measured distance
greedy.py        Karpenter's order of consolidation
threshold.py     a threshold of utilization, as Cluster Autoscaler has it
pacing.py        the pauses between their passes
"""
