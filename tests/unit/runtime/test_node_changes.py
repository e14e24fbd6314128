"""The instant at which a Node was last seen to change, as far as pods may be let in by it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.model.kubernetes.objects import Node
from kerf.runtime.state.node_changes import KEPT, NodeChanges
from kerf_api.v1.meta import Taint
from tests.unit.scheduling import worlds as w

NODE = w.node("n1")
LATER = w.NOW + timedelta(minutes=1)


def _noticed(new: Node) -> NodeChanges:
    changes = NodeChanges()
    changes.noticed(None, NODE, w.NOW)
    changes.noticed(NODE, new, LATER)
    return changes


@pytest.mark.parametrize(
    "new",
    [
        replace(NODE, spec=replace(NODE.spec, taints=(Taint(key="k", effect="NoSchedule"),))),
        replace(NODE, metadata=replace(NODE.metadata, labels={**NODE.metadata.labels, "k": "v"})),
        replace(NODE, status=replace(NODE.status, allocatable={"cpu": "1"})),
    ],
    ids=["taints", "labels", "allocatable"],
)
def test_a_change_that_lets_pods_in_counts(new: Node) -> None:
    assert _noticed(new).at(LATER) == {"n1": LATER}


def test_other_changes_do_not_count() -> None:
    annotated: dict[str, Any] = {"annotations": {"heartbeat": "1"}}
    assert _noticed(replace(NODE, metadata=replace(NODE.metadata, **annotated))).at(LATER) == {"n1": w.NOW}


def test_a_node_is_forgotten_when_it_goes_when_time_passes_and_when_the_clock_is_set_back() -> None:
    changes = _noticed(NODE)
    assert not changes.at(w.NOW + KEPT)
    changes = _noticed(NODE)
    assert not changes.at(w.NOW - timedelta(seconds=1))
    changes = _noticed(NODE)
    changes.noticed(NODE, None, LATER)
    assert not changes.at(LATER)


def test_nodes_are_forgotten_one_by_one_the_one_that_changed_first_before_the_others() -> None:
    changes = NodeChanges()
    changes.noticed(None, NODE, w.NOW)
    changes.noticed(None, w.node("n2"), w.NOW + timedelta(seconds=1))
    changes.noticed(NODE, replace(NODE, status=replace(NODE.status, allocatable={"cpu": "1"})), LATER)
    assert changes.at(w.NOW + timedelta(seconds=1) + KEPT) == {"n1": LATER}


def test_snapshots_get_the_same_table_until_a_node_changes() -> None:
    changes = _noticed(NODE)
    earlier = changes.at(LATER)
    assert changes.at(LATER + timedelta(seconds=1)) is earlier
    changes.noticed(NODE, replace(NODE, status=replace(NODE.status, allocatable={"cpu": "1"})), LATER)
    assert (earlier, changes.at(LATER)) == ({"n1": w.NOW}, {"n1": LATER})
