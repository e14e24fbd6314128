"""Records: the inputs and outcomes of decisions, one after another, and their reproduction (`kerf replay`).

A record is a sequence of parts. Each part starts with a checkpoint, a whole snapshot in the lines of `kerf.snapshots`,
and continues with the changes of each decision.

lines.py       the lines of a part beside those of snapshots
plans.py       a plan in a form that does not depend on removed texts, and its digest
following.py   the changes of a snapshot since the one before
encoding.py    from these changes and the plan to lines
reading.py     from lines to snapshots and recorded decisions
ordering.py    decisions of several processes in the order of their times
replaying.py   the decisions, made again, and their differences
supposing.py   the decisions, made again with other NodePools and EC2NodeClasses
"""
