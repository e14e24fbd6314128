"""Drifted, Consolidatable and DisruptionReason: when they are set, when removed, when to look again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.drift.conditions import conditions
from kerf.disruption.view import view
from kerf.model.aws.cloud import HeldReservation, Instance
from kerf.model.plan import PatchObject, Source
from kerf.model.settings import FeatureGates, Settings
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim
from tests.unit.disruption.worlds import HOUR, NOW, claim, node, pool, snapshot, torn

MINUTE = timedelta(minutes=1)


def written(*objects: Any, name: str = "a", **facts: Any) -> dict[str, str] | None:
    """Types and reasons of the conditions as written; None when nothing was."""
    plan = conditions(view(snapshot(objects, **facts)))
    found = [a for a in plan.actions if isinstance(a, PatchObject) and a.ref.name == name]
    if not found:
        return None
    (patch,) = found
    assert (patch.subresource, patch.resource_version) == ("status", "1")
    return {row["type"]: row["reason"] for row in patch.patch["status"]["conditions"] if row["status"] == "True"}


def has(one: NodeClaim, own: Any, type_: str, **facts: Any) -> str | None:
    """The reason with which the claim ends up having the condition; None when it has not."""
    after = written(own, one, node(one), **facts)
    if after is None:
        found = one.condition(type_)
        return found.reason if found is not None else None
    return after.get(type_)


def test_static_pools_and_deleting_claims_are_not_judged() -> None:
    one = claim("a", consolidatable=False)
    assert written(pool(replicas=1), one) is None
    assert written(pool(), replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW))) is None


def hashes(value: str, version: str = "v3") -> dict[str, str]:
    return {labels.NODEPOOL_HASH: value, labels.NODEPOOL_HASH_VERSION: version}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot"]}, "RequirementsDrifted"),
        ({"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]}, None),
        ({"key": "team", "operator": "In", "values": ["red"]}, "RequirementsDrifted"),
        ({"key": "team", "operator": "Exists"}, "RequirementsDrifted"),
        ({"key": "team", "operator": "DoesNotExist"}, None),
        ({"key": "team", "operator": "NotIn", "values": ["red"]}, None),
        ({"key": labels.ZONE, "operator": "DoesNotExist"}, "RequirementsDrifted"),
    ],
)
def test_requirements_drift(entry: dict[str, Any], expected: str | None) -> None:
    assert has(claim("a"), pool(requirements=[entry]), "Drifted") == expected


def test_while_no_types_are_known_none_is_gone() -> None:
    one = claim("a", since=NOW - 2 * HOUR, instance_type="m9.huge")
    assert has(one, pool(), "Drifted") == "InstanceTypeNotFound"
    assert has(one, pool(), "Drifted", catalogues={}) is None


@pytest.mark.parametrize(
    ("listed", "open_", "expected"),
    [(1, True, "CapacityReservationDrift"), (0, True, None), (-1, True, None), (1, False, None)],
)
def test_a_reservation_that_is_selected_no_longer(listed: int, open_: bool, expected: str | None) -> None:
    """Only once the instances were listed after the reservations: EC2 may have made it one on demand."""
    one, held = claim("a"), HeldReservation(id="cr-1")
    machine = Instance("i-a", "m5.large", "z", "running", "reserved", NOW - HOUR, reservation=held)
    facts: dict[str, Any] = {
        "instances": {machine.id: machine},
        "fresh_at": {Source.INSTANCES: NOW},
        "resolved_at": {"default": NOW - listed * MINUTE},
        "settings": Settings("test", gates=FeatureGates(reserved_capacity=open_)),
    }
    own = EC2NodeClass(metadata=ObjectMeta(name="default"))
    after = written(pool(), one, node(one), own, **facts)
    assert (after or {}).get("Drifted") == expected


def test_without_its_pool_a_claim_keeps_what_it_has() -> None:
    one = claim("a", drifted=NOW - HOUR)
    assert written(one) is None


@pytest.mark.parametrize("part", ["claim", "pool"])
def test_what_could_be_read_only_in_part_changes_no_condition(part: str) -> None:
    """Neither to more than there was (a `consolidateAfter` of 0s by default) nor to less (conditions not read)."""
    one, own = claim("a", consolidatable=False, annotations=hashes("1")), pool(annotations=hashes("2"))
    assert written(torn(own) if part == "pool" else own, torn(one) if part == "claim" else one) is None


def test_a_new_reason_keeps_the_time_since_when_it_drifted() -> None:
    one = claim("a", drifted=NOW - HOUR, annotations=hashes("same"))
    own = pool(annotations=hashes("same"), requirements=[{"key": "team", "operator": "Exists"}])
    (patch,) = (a for a in conditions(view(snapshot([own, one]))).actions if isinstance(a, PatchObject))
    row = next(r for r in patch.patch["status"]["conditions"] if r["type"] == "Drifted")
    assert row["reason"] == "RequirementsDrifted"
    assert row["lastTransitionTime"] == "2026-03-04T11:00:00Z"
    assert set(row) >= {"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}


def test_a_stale_disruption_reason_goes() -> None:
    one = claim("a")
    left = (*one.status.conditions, replace(one.status.conditions[0], type="DisruptionReason", reason="Empty"))
    one = replace(one, status=replace(one.status, conditions=left))
    assert has(one, pool(), "DisruptionReason") is None


def test_nothing_is_written_when_nothing_changes() -> None:
    assert written(pool(), claim("a"), node(claim("a"))) is None
