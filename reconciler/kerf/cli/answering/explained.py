"""The text of `kerf why` for one object of a snapshot."""

from __future__ import annotations

from kerf.cli.answering import account_page, node_page
from kerf.judgement import judge
from kerf.model.snapshot import Snapshot
from kerf.provisioning.why import why


def of_node(snapshot: Snapshot, name: str) -> str:
    """The page of `kerf why node`."""
    return node_page.page(judge.why(snapshot, name), snapshot.now)


def of_pod(snapshot: Snapshot, key: str) -> str:
    """The page of `kerf why pod` for `namespace/name`."""
    return account_page.page(why(snapshot, key))
