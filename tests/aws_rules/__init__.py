"""AWS's own rules for the parameters of each call that Kerf makes.

    for problem in check("ec2", "CreateFleet", parameters):
        print(problem.code, problem.rule, problem.text)

Two sources. The service models of botocore give types, required members, lengths, ranges, patterns and enumerations
(`model.py`). The AWS documentation gives the rest: one small function for each rule, with the address of its page and
the date on which it was read. Nothing here imports `reconciler`: the table is a reading of AWS, not of Kerf.
"""

from __future__ import annotations

from .rule import Call, Problem, Rule
from .table import RULES, check, rules_for

__all__ = ["RULES", "Call", "Problem", "Rule", "check", "rules_for"]
