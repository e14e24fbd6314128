"""The referee: checks a scheduler's answer against the rules of Kubernetes and the API, plainly and slowly.

It shares nothing with the engine but the values of `api` and `kerf.model`. Where an answer depends on the order
in which pods bind (a spread that counts pods which do not own it), it asks only for what every order needs.
Preferences and the order of NodePools by weight are no rules: to miss them is no violation.

    answers.py     what is read of an answer; the names of the rules
    selecting.py   labels, taints and selectors       needs.py      resources and host ports of a pod
    volumes.py     where volumes can be               daemons.py    what daemon sets take of new nodes
    devices.py     devices by claim
    attaching.py   how many volumes a node can attach
    arriving.py    pods of daemon sets that nodes wait for yet
    kinds.py       pods that are alike                places.py     nodes and what they may become
    standing.py    the rules of one node              planned.py    new nodes, and their NodePools' limits
    defaults.py    the spread that pods are given when they ask for none
    census.py      who is where                       spread.py, company.py    the rules between pods
    cost.py        what the new nodes cost, and what they must cost at least
"""

from __future__ import annotations

from tests.referee.answers import RULES, Answer, PlannedNode, Violation
from tests.referee.judge import violations

__all__ = ["RULES", "Answer", "PlannedNode", "Violation", "violations"]
