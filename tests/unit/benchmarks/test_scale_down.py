"""The scale-down on a real control plane: what is read from an audit log, what both sides are given, what is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.document import rewrite
from benchmarks.growth import DOCUMENT
from benchmarks.peers.kwok import instance_types
from benchmarks.scale_down import laboratory
from benchmarks.scale_down.__main__ import HEAD, Figures, cells, targets, timeline
from benchmarks.scale_down.journal import AuditLog, Change, Moment
from benchmarks.scale_down.load import LEFT, PODS, Measure, catalogue, deployments, family_names
from kerf.model.kubernetes.objects import Node, Pod
from kerf_api.v1.meta import decode

BEFORE = Moment(0.0, 52, 52, 20_000_000, 0, 0, 0, 0.0, 0)
MOMENTS = (
    BEFORE,
    Moment(20.0, 40, 40, 9_000_000, 1, 100, 90, 3.0, 2**20),
    Moment(60.0, 30, 30, 8_300_000, 2, 200, 190, 4.0, 2**21),
    Moment(70.4, 29, 29, 8_200_000, 2, 210, 200, 5.0, 2**21),
)
FOUND = Figures(BEFORE, 1.02, 8_000_000.0, MOMENTS, unrest="")


def line(verb: str, subresource: str = "", code: int = 201, resource: str = "pods", name: str = "a") -> bytes:
    about = {"resource": resource, "subresource": subresource, "name": name, "namespace": "default"}
    told = {"kind": "Event", "verb": verb, "objectRef": about, "responseStatus": {"code": code}}
    text = json.dumps({**told, "stageTimestamp": "1970-01-01T00:00:02.500000Z"}, separators=(",", ":"))
    return text.encode() + b"\n"


def test_of_an_audit_log_only_what_happened_to_pods_is_read_and_each_line_once(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(line("create") + line("create", "eviction", name="b") + line("create", "eviction", code=429))
    log = AuditLog(path)
    assert log.news() == [Change(2.5, "created", "a"), Change(2.5, "evicted", "b")]
    more = line("patch", "status", 200) + line("create", resource="nodes") + line("delete", code=200)
    half = line("create", "binding")
    with path.open("ab") as file:
        file.write(more + half[:20])
    assert log.news() == [Change(2.5, "deleted", "a")]
    with path.open("ab") as file:
        file.write(half[20:])
    assert log.news() == [Change(2.5, "bound", "a")]
    assert log.news() == []
    path.write_bytes(line("create"))
    with pytest.raises(RuntimeError, match="not the file"):
        log.news()


def test_both_sides_are_given_the_same_room_and_prices() -> None:
    rows = catalogue()
    theirs = {one["name"]: one for one in instance_types(rows)}
    assert family_names(rows)[:2] == ("c5", "c6i")
    assert max(row["allocatable"]["cpu"] for row in rows) <= 16_000
    for row in rows:
        one, room = theirs[row["name"]], row["allocatable"]
        assert one["resources"]["cpu"] == f"{room['cpu'] + 100}m"
        assert one["resources"]["memory"] == f"{room['memory'] + 10}Mi"
        assert {offer["Price"] for offer in one["offerings"]} == {offer["price"] for offer in row["offerings"]}
        said = [need["values"] for offer in one["offerings"] for need in offer["Requirements"]]
        assert ["on-demand"] in said
        assert ["spot"] not in said


def test_the_load_is_of_so_many_pods_and_of_its_seed() -> None:
    items: list[dict[str, Any]] = json.loads(deployments(1))["items"]
    assert sum(one["spec"]["replicas"] for one in items) == PODS
    assert LEFT % len(items) == 0
    assert deployments(1) == deployments(1) != deployments(2)


@pytest.mark.parametrize(("memory", "as_sold"), [(0, True), (1, True), (64, False)])
def test_a_node_with_other_room_than_was_sold_is_told(memory: int, as_sold: bool) -> None:
    rows = catalogue()
    measure, sold = Measure(rows), rows[0]
    room = sold["allocatable"]
    allocatable = {"cpu": f"{room['cpu']}m", "memory": f"{room['memory'] - memory}Mi", "pods": str(room["pods"])}
    labels = {"node.kubernetes.io/instance-type": sold["name"]}
    node = decode(Node, {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": allocatable}})
    assert (measure.surprises([node]) == []) is as_sold
    assert measure.cost([node, node]) == 2 * round(sold["offerings"][0]["price"] * 1e6)


def test_no_nodes_for_a_pod_cost_less_than_the_bound() -> None:
    measure, rows = Measure(catalogue()), catalogue()
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    pods = [decode(Pod, {"metadata": {"name": name}, "spec": {"containers": containers}}) for name in "ab"]
    assert measure.bound(pods) == pytest.approx(2 * measure.bound(pods[:1]))
    assert 0 < measure.bound(pods[:1]) <= min(row["offerings"][0]["price"] for row in rows) * 1e6


def test_when_the_cost_was_near_the_bound_for_good() -> None:
    assert FOUND.near_after == 60.0
    risen = replace(FOUND, moments=(*MOMENTS, replace(MOMENTS[1], seconds=80.0)))
    assert risen.near_after is None
    assert replace(risen, moments=(*risen.moments, replace(MOMENTS[3], seconds=90.0))).near_after == 90.0


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({}, []),
        ({"seconds": 121.0}, ["last change"]),
        ({"cost": 8_500_000}, ["cost by the bound"]),
        ({"evicted": 351}, ["evictions"]),
    ],
)
def test_what_is_to_be_reached(change: dict[str, Any], missed: list[str]) -> None:
    found = replace(FOUND, moments=(*MOMENTS[:-1], replace(MOMENTS[-1], **change)))
    assert [row.what.rpartition(", ")[2] for row in targets(found) if not row.met] == missed


@pytest.mark.parametrize("unrest", ["not within 600", "597 of 600 pods run"])
def test_a_cluster_that_never_rests_or_lacks_pods_misses_the_time(unrest: str) -> None:
    found = replace(FOUND, unrest=unrest)
    assert next((row.met, row.measured) for row in targets(found)) == (False, unrest)
    assert [row.met for row in targets(found)] == [False, True, True]
    assert unrest in cells("Kerf", found)


def test_figures_and_a_timeline_of_what_changed(tmp_path: Path) -> None:
    told = dict(zip(HEAD, cells("Kerf", FOUND), strict=True))
    assert (told["last change, s"], told["ratio"], told["evictions"], told["peak MiB"]) == ("70", "1.025", "210", "2")
    assert len(list(timeline(replace(FOUND, moments=(*MOMENTS, replace(MOMENTS[-1], seconds=71.0)))))) == 1 + 4
    page = tmp_path / "performance.md"
    page.write_text(DOCUMENT.read_text())
    rewrite(page, {"scale-down": "measured"})
    assert "-->\nmeasured\n<!--" in page.read_text()


def test_the_laboratory_counts_each_eviction_once_by_its_cause() -> None:
    found = laboratory.measure(seed=1, pods=100)
    assert found.nodes < found.nodes_before
    assert found.evictions > 0
    deleted = int(found.cells[laboratory.HEAD.index(laboratory.DELETED)])
    assert deleted + found.replaced + found.again == found.evictions
    assert found.ratio >= 1
