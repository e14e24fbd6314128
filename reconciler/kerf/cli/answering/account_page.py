"""What `kerf why` prints: the answer in one line, then the account of a refusal, for a reader who does not know the
code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kerf_api.texts import counted

if TYPE_CHECKING:
    from kerf.provisioning.why import Answer
    from kerf.scheduling.answers.explanation import Account, NodesAccount, PoolAccount

_WIDTH = 52


def page(answer: Answer) -> str:
    """The whole text, with a line break at its end."""
    lines = [f"pod {answer.pod} {_head(answer)}", *(f"  {line}" for line in answer.details)]
    if answer.cause is not None:
        lines.append(f"  cause: {answer.cause.text}")
    refusal = answer.refusal
    if refusal is not None and refusal.account is not None:
        lines += _account(refusal.account, [] if refusal.quotas else list(_fixes(refusal.account)))
    elif refusal is not None:
        lines += [f"  NodePool {name}: {why}" for name, why in refusal.pools.items()]
    return "\n".join(line.rstrip() for line in [*lines, *_to_do(answer)]) + "\n"


def _to_do(answer: Answer) -> Iterator[str]:
    """What is left to the user: edits of an account are listed with it, unless a used-up quota comes before them."""
    refusal = answer.refusal
    listed = refusal is not None and refusal.account is not None and refusal.account.fixes and not refusal.quotas
    if answer.patches and not listed:
        yield ""
        yield "To do:"
        yield from (f"  - {patch.text}" for patch in answer.patches)


def _head(answer: Answer) -> str:
    if answer.code == "NotFound":
        return "does not exist"
    if answer.code != "Refused":
        return answer.text
    account = answer.refusal.account if answer.refusal is not None else None
    others = f" (one of {account.pods} equal pods)" if account is not None and account.pods > 1 else ""
    return f"has no place{others}: {answer.text}"


def _account(account: Account, fixes: list[str]) -> Iterator[str]:
    if account.pools or account.nodes.looked_at:
        yield ""
        yield from _nodes(account.nodes)
    for pool in account.pools:
        yield ""
        yield from _pool(pool)
    if account.more_pools:
        yield ""
        yield f"and {counted(account.more_pools, 'more NodePool')}"
    if fixes:
        yield ""
        yield from fixes


def _nodes(nodes: NodesAccount) -> Iterator[str]:
    if not nodes.looked_at:
        yield "Nodes that exist: none"
        return
    yield f"Nodes that exist: {nodes.looked_at} checked, none fits"
    for text, count in nodes.rows:
        yield f"  {count:>6}  {text}"
    if nodes.nearest:
        yield f"  nearest: {nodes.nearest}"


def _pool(pool: PoolAccount) -> Iterator[str]:
    yield f"NodePool {pool.pool}: {pool.verdict}"
    if pool.steps:
        yield f"  {'':<{_WIDTH}} types  offerings"
        yield f"  {'all of the NodePool':<{_WIDTH}} {pool.types:>5}  {pool.offerings:>9}"
    for step in pool.steps:
        name = f"{step.rule} {step.about}".strip()
        name = name if len(name) <= _WIDTH - 6 else f"{name[: _WIDTH - 7]}…"
        yield f"  {'after ' + name:<{_WIDTH}} {step.types:>5}  {step.offerings:>9}"
    if pool.nearest:
        yield f"  nearest: {pool.nearest}"


def _fixes(account: Account) -> Iterator[str]:
    if account.fixes:
        yield "Any one of these edits is enough; each was tried with all pending pods:"
        yield from (f"  - {_edit(str(fix))}" for fix in account.fixes)
    elif account.tried:
        tried = f"{account.tried} {'was' if account.tried == 1 else 'were'} tried"
        yield f"No single edit of the pod or of one NodePool would do; {tried}."
    else:
        yield "There is no edit of the pod or of a NodePool to try."


def _edit(text: str) -> str:
    return text if text.startswith("NodePool ") else f"the pod: {text}"
