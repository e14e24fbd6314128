"""Volumes: behaviours 130 to 137 and 141 of the catalogue (scheduling reference §11).

The others are in `test_catalogue_attach_limits.py`.
"""

from __future__ import annotations

from typing import Any

from kerf.model.kubernetes.objects import Pod
from kerf.model.kubernetes.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kerf_api import labels
from kerf_api.v1.meta import decode
from tests.unit.scheduling import catalogue_world as c
from tests.unit.scheduling import worlds as w

Rows = list[tuple[str, str, list[str]]]


def claim(name: str = "c", volume: str = "", storage_class: str | None = None) -> PersistentVolumeClaim:
    """Bound if it has a volume."""
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = {"name": name, "namespace": "default", "annotations": done}
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return decode(PersistentVolumeClaim, {"metadata": meta, "spec": spec})


def volume(name: str, *terms: Rows, **spec: Any) -> PersistentVolume:
    """A volume whose node affinity has these alternatives of (key, operator, values)."""
    rows = [{"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in term]} for term in terms]
    required = {"nodeAffinity": {"required": {"nodeSelectorTerms": rows}}} if rows else {}
    return decode(PersistentVolume, {"metadata": {"name": name}, "spec": {**required, **spec}})


def in_zones(name: str, *zones: str) -> PersistentVolume:
    """A volume with one alternative per zone."""
    return volume(name, *([(labels.ZONE, "In", [zone])] for zone in zones))


def waiting(name: str, *terms: list[str]) -> StorageClass:
    """A class that binds when a pod comes; each term is an alternative set of zones."""
    topologies = [{"matchLabelExpressions": [{"key": labels.ZONE, "values": zones}]} for zones in terms]
    mode = {"volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies}
    return decode(StorageClass, {"metadata": {"name": name}, "provisioner": "ebs.csi.aws.com", **mode})


def using(name: str = "p", *claims: str, **spec: Any) -> Pod:
    names = claims or ("c",)
    return w.pod(name, volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names], **spec)


def ephemeral(name: str, storage_class: str | None, **spec: Any) -> Pod:
    template = {"volumeClaimTemplate": {"spec": {"storageClassName": storage_class}}}
    return w.pod(name, volumes=[{"name": "scratch", "ephemeral": template}], **spec)


def test_130_what_is_missing_stops_only_its_pod() -> None:
    """The claim, its class, or its volume: an event says so, and the others go on."""
    for objects in ([], [claim(storage_class="missing")], [claim(volume="missing")]):
        done = c.run(w.pool(), objects, using(), w.pod("other"))
        assert done.pending == ["p"]
        assert done.of("other")
        events = c.plan(w.pool(), objects, using(), w.pod("other")).events
        assert [e.uid for e in events if e.reason == "FailedScheduling"] == ["uid-default-p"]


def test_131_the_class_of_a_bound_claim_does_not_matter() -> None:
    """Of one that is not bound yet it does."""
    for name in (None, "", "missing"):
        assert c.run(w.pool(), claim(volume="v", storage_class=name), in_zones("v", "z1"), using()).node
        assert c.run(w.pool(), claim(storage_class=name), using()).pending == ["p"]


def test_132_a_volume_that_is_yet_to_come_goes_where_its_class_allows() -> None:
    """A claim, and an ephemeral volume; a pod that must be elsewhere waits."""
    found = waiting("s", ["z1", "z2"])
    elsewhere: dict[str, Any] = {"nodeSelector": {labels.ZONE: "z3"}}
    assert c.run(w.pool(), found, claim(storage_class="s"), using()).node.zones == ("z1", "z2")
    assert c.run(w.pool(), found, claim(storage_class="s"), using(**elsewhere)).pending == ["p"]
    assert c.run(w.pool(), found, ephemeral("p", "s")).node.zones == ("z1", "z2")
    assert c.run(w.pool(), found, ephemeral("p", "s", **elsewhere)).pending == ["p"]


def test_133_a_bound_volume_pins_the_zone() -> None:
    """A pod that must be elsewhere waits."""
    bound = [claim(volume="v"), in_zones("v", "z3")]
    assert c.run(w.pool(), bound, using()).node.zones == ("z3",)
    assert c.run(w.pool(), bound, using(nodeSelector={labels.ZONE: "z1"})).pending == ["p"]


def test_134_a_volume_of_the_node_itself_does_not_pin_the_host() -> None:
    """A local one and one of a host path; any other volume that names a host does."""
    term: Rows = [(labels.HOSTNAME, "In", ["old-node"])]
    for kind in ("local", "hostPath"):
        assert c.run(w.pool(), claim(volume="v"), volume("v", term, **{kind: {"path": "/x"}}), using()).node
    assert c.run(w.pool(), claim(volume="v"), volume("v", term), using()).pending == ["p"]


def test_135_an_alternative_that_only_named_a_host_demands_nothing() -> None:
    """The other one, with a zone that does not exist, need not be taken."""
    terms: list[Rows] = [[(labels.HOSTNAME, "In", ["old-node"])], [(labels.ZONE, "In", ["nowhere"])]]
    assert c.run(w.pool(), claim(volume="v"), volume("v", *terms, local={"path": "/x"}), using()).node


def test_136_each_alternative_settles_the_zone() -> None:
    """Two pods that shun each other by zone, whose volumes may be in either of two: one in each, in one pass."""
    shun = w.between("podAntiAffinity", labels.ZONE)
    own: dict[str, Any] = {"labels": {"app": "web"}, "affinity": shun}
    pods = [using(name, name, **own) for name in "ab"]
    bound = [claim(n, f"v{n}") for n in "ab"] + [in_zones(f"v{n}", "z1", "z2") for n in "ab"]
    yet = [claim(n, storage_class="s") for n in "ab"] + [waiting("s", ["z1"], ["z2"])]
    for objects in (bound, yet):
        done = c.run(w.pool(), objects, pods)
        assert sorted(node.zones for node in done.nodes) == [("z1",), ("z2",)]


def test_137_two_volumes_meet_in_the_only_combination_that_both_allow() -> None:
    """z1 or z2, and z2 or z3."""
    objects = [claim("a", "va"), claim("b", "vb"), in_zones("va", "z1", "z2"), in_zones("vb", "z3", "z2")]
    assert c.run(w.pool(), objects, using("p", "a", "b")).node.zones == ("z2",)


def test_141_a_volumes_zone_does_not_narrow_what_a_spread_looks_at() -> None:
    """All three zones count for minDomains, so the fourth pod goes where its volume is."""
    nodes = [w.node(f"n-{zone}", zone, cpu="100m") for zone in w.ZONES]
    old = [w.pod(f"old-{zone}", node=f"n-{zone}", labels={"app": "web"}) for zone in w.ZONES]
    spread = {"labels": {"app": "web"}, "topologySpreadConstraints": [w.spread(minDomains=3)]}
    bound = [claim(volume="v"), in_zones("v", "z1")]
    story = c.Story.of(w.pool(), nodes, old, bound)
    assert story.batch(using("p", **spread)).node.zones == ("z1",)
    assert story.counts() == [1, 1, 2]
