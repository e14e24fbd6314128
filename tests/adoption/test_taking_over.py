"""A controller takes over thirty nodes of Karpenter's in the sandbox: what it writes, each field of it explained."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kerf.model import kinds
from kerf.model.aws.inventory import TEMPLATE, Resource
from kerf_api import labels
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import nodeclass_hash
from kerf_api.v1.meta import decode
from tests.simulation.trouble import lives

from . import predecessor, sample
from .differences import EXPLAINED, differences, unexplained
from .world import Adopted


@pytest.fixture
def play() -> Adopted:
    made = Adopted(sample.manifests(), cluster=sample.CLUSTER)
    made.settle()
    assert all(pod.status.phase == "Running" for pod in made.values(kinds.POD))
    return made


def test_v5_hashes_are_as_recorded() -> None:
    spec = predecessor.node_class("default", sample.SANDBOX)["spec"]
    assert predecessor.v5_hash(spec, predecessor.RECORDED_CA) == predecessor.RECORDED_HASH
    pool = predecessor.node_pool("default", "default")
    assert pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"] == predecessor.RECORDED_POOL_HASH


def test_every_field_that_is_written_is_explained_and_no_node_is_touched(play: Adopted) -> None:
    before = play.objects()
    play.live(minutes=10)
    after = play.objects()
    assert list(unexplained(before, after)) == []
    written = {(name.partition("/")[0], place) for name, place, *_ in differences(before, after)}
    assert {(kind, place) for kind, places in EXPLAINED.items() for place in places if "hash" in place} <= written
    _untouched(play)


def test_the_guide_names_every_field_that_is_written() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (.*?) \|", text, re.MULTILINE)
    for kind, places in EXPLAINED.items():
        named = {word for of, fields in rows if of == kind for word in re.findall(r"`(\S+?)`", fields)}
        assert {word.removeprefix("status.") for word in named} == {_named(place) for place in places}


def test_what_was_hashed_as_v5_is_stamped_anew_and_not_compared(play: Adopted) -> None:
    """Each class's own v6 hash is on it and on each of its claims, whatever the number was that v5 came to."""
    play.live(minutes=1)
    for value in play.values(kinds.NODE_CLASS):
        expected = {labels.NODECLASS_HASH: _v6(value), labels.NODECLASS_HASH_VERSION: "v6"}
        own = [value, *(claim for claim in _claims(play) if claim.spec.node_class_ref.name == value.name)]
        assert len(own) == 1 + sample.EACH
        for one in own:
            assert expected.items() <= one.metadata.annotations.items()


def test_a_day_goes_by_and_no_node_is_touched(play: Adopted) -> None:
    names = {claim.name for claim in _claims(play)}
    play.live(days=1)
    assert {claim.name for claim in _claims(play)} == names
    _untouched(play)


@pytest.mark.parametrize("name", sample.CLASSES)
def test_a_change_of_one_class_drifts_its_nodes_and_no_other(play: Adopted, name: str) -> None:
    play.live(minutes=1)
    machines = set(play.world.ec2.instances)
    play.world.server.patch(kinds.NODE_CLASS, "", name, {"spec": {"tags": {"team": "other"}}})
    play.live(minutes=1)
    drifted = {claim.name: claim.condition("Drifted") for claim in _claims(play) if claim.is_true("Drifted")}
    assert {claim.rpartition("-")[0] for claim in drifted} == {name}
    assert {told.reason for told in drifted.values()} == {"NodeClassDrift"}
    play.live(hours=3)
    now = {claim.name for claim in _claims(play)}
    others = {claim.name for claim in _claims(play) if claim.pool_name != name}
    assert len(others) == 2 * sample.EACH
    assert not now & {sample.machine(name, number).claim for number in range(sample.EACH)}
    ended = {id_ for id_ in machines if not lives(play.world.ec2.instances[id_])}
    assert ended == {sample.machine(name, number).instance_id for number in range(sample.EACH)}


def test_launch_templates_are_known_by_their_tags_whoever_made_them(play: Adopted) -> None:
    """Those of this cluster go when nothing has needed them for an hour; another cluster's are its own."""
    now = play.world.clock.now()
    for name, cluster in (("karpenter.k8s.aws/1", sample.CLUSTER), ("karpenter.k8s.aws/2", "another")):
        tags = predecessor.resource_tags("default", "default", cluster)
        play.cloud.templates[name] = (Resource(TEMPLATE, f"lt-0000000{name[-1]}", name, now), tags)
    play.live(minutes=50)
    assert "karpenter.k8s.aws/1" in play.cloud.templates
    play.live(hours=2)
    assert [name for name in play.cloud.templates if name[-2:] in ("/1", "/2")] == ["karpenter.k8s.aws/2"]
    _untouched(play)


def test_what_is_given_back_is_as_karpenter_expects_it(play: Adopted) -> None:
    """All that it wrote is there and has its values, but for the hashes; what else is there it does not know."""
    before = play.objects()
    play.live(hours=2)
    after = play.objects()
    for name, manifest in before.items():
        for part in ("labels", "finalizers", "ownerReferences"):
            assert after[name]["metadata"].get(part) == manifest["metadata"].get(part)
        assert after[name]["spec"] == manifest["spec"]
        kept, known = _annotations(after[name]), _annotations(manifest)
        assert {key for key in kept if kept[key] != known.get(key)} <= {
            labels.NODECLASS_HASH,
            labels.NODECLASS_HASH_VERSION,
        }
        assert _true(manifest) <= _true(after[name])
    # Whoever hashes as v5 stamps all anew, in its turn: a claim may carry another version than that, never two.
    for value in play.values(kinds.NODE_CLASS):
        versions = {
            claim.metadata.annotations[labels.NODECLASS_HASH_VERSION]
            for claim in _claims(play)
            if claim.spec.node_class_ref.name == value.name
        }
        assert versions == {value.metadata.annotations[labels.NODECLASS_HASH_VERSION]}


# --- aids -------------------------------------------------------------------------------------------------------
def _named(place: str) -> str:
    """A field as the guide calls it: annotations and conditions by their own names."""
    return re.sub(r"^(metadata\.annotations|status\.conditions|status)\.", "", place)


def _claims(play: Adopted) -> list[Any]:
    return play.values(kinds.NODE_CLAIM)


def _untouched(play: Adopted) -> None:
    """No instance came, went or was tagged, no node is tainted or marked, none has drifted."""
    assert play.seam.writes("create", "delete", "evict", "create_fleet", "terminate", "tag") == []
    assert all(lives(machine) for machine in play.world.ec2.instances.values())
    assert not any(claim.condition("Drifted") or claim.condition("DisruptionReason") for claim in _claims(play))
    assert not any(node.spec.taints for node in play.values(kinds.NODE))
    assert not any(labels.COMMAND in claim.metadata.annotations for claim in _claims(play))


def _v6(node_class: EC2NodeClass) -> str:
    return nodeclass_hash(decode(EC2NodeClass, _plain(node_class)), predecessor.RECORDED_CA)


def _plain(node_class: EC2NodeClass) -> Mapping[str, Any]:
    spec = predecessor.node_class("any", sample.SANDBOX, **sample.CLASSES[node_class.name])["spec"]
    return {"metadata": {"name": node_class.name}, "spec": spec}


def _annotations(manifest: Mapping[str, Any]) -> dict[str, str]:
    return dict(manifest["metadata"].get("annotations") or {})


def _true(manifest: Mapping[str, Any]) -> set[str]:
    return {row["type"] for row in manifest["status"].get("conditions", ()) if row["status"] == "True"}
