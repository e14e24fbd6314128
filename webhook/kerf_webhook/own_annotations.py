"""Changes of annotations in which Kerf keeps its own state are refused (`api/kerf_api/written_annotations.py`).

The match conditions of the chart let requests of Kerf's own account and of trusted accounts pass, so each request that
comes here is from another account. The spec is not judged: an update of metadata passes whatever the spec is like.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kerf_api import crds
from kerf_api.lint.problem import path_text, shown
from kerf_api.lint.reading.reading import mapping, part
from kerf_api.written_annotations import WRITTEN, Change, refused

from .review import Review

_PLACE: Final = ("metadata", "annotations")
_RESOURCES: Final = {crds.load(kind)["metadata"]["name"]: kind for kind in WRITTEN}


def is_ours(review: Review) -> bool:
    """Whether the request may change such an annotation; a write to a subresource changes no metadata."""
    if review.resource not in _RESOURCES or review.operation not in ("CREATE", "UPDATE") or review.subresource:
        return False
    return not review.foreign


def objection(review: Review) -> str:
    """Why the change is refused, and the fix; empty when it is allowed."""
    kind = _RESOURCES[review.resource]
    old = mapping(review.old, *_PLACE) if review.operation == "UPDATE" else None
    changes = refused(kind, mapping(review.new, *_PLACE), old)
    if not changes:
        return ""
    name = review.name or str(part(review.new, "metadata", "name") or "")
    problems = ", ".join(f"{path_text((*_PLACE, change.key))} is {change.how}" for change in changes)
    account = f"the account {shown(review.user)}" if review.user else "this account"
    return (
        f"{kind} {name}: {problems}: only Kerf and the accounts in webhook.trustedAccounts of its chart may do that, "
        f"and {account} is none of them; {_fix(changes)}"
    )


def _fix(changes: Sequence[Change]) -> str:
    kept = [change for change in changes if change.how == "removed"]
    them = "it" if len(changes) == 1 else "them"
    if not kept:
        return f"remove {them} from the manifest"
    if len(kept) == len(changes):
        return f"keep {them} as in the cluster"
    return "remove from the manifest those that are added or changed, and keep the others as in the cluster"
