"""What `kerf why nodepool` prints: the verdict in one line, then what it rests on, and the budgets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from kerf.cli.answering.node_page import at, budgets

if TYPE_CHECKING:
    from kerf.judgement.pools import PoolJudgement


def page(found: PoolJudgement, now: datetime) -> str:
    """The whole text, with a line break at its end."""
    since = f", since {at(found.since, now)}" if found.since is not None else ""
    lines = [f"NodePool {found.name} {found.text}{since}"]
    if found.similar:
        lines.append(f"  did you mean {', '.join(found.similar)}?")
    if found.about:
        lines.append(f"  {found.about}")
    lines += [f"  - {fact.text}" + (f" {at(fact.at, now)}" if fact.at is not None else "") for fact in found.facts]
    if found.budgets is not None:
        lines += ["", *budgets(found.budgets, now)]
    return "\n".join(lines) + "\n"
