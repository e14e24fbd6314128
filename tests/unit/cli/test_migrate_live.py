"""`kerf migrate check` of a cluster that runs, and of its AWS: what is asked, and what the nodes come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from kerf.cli.migration import migrate_page
from kerf.model import kinds
from kerf.model.changes.indexes import InstanceIndex
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot
from kerf.ports import Unavailable
from kerf.runtime.observe.looking import look
from kerf.runtime.preflight.findings import Finding
from kerf.runtime.settings.options import Options
from tests.adoption import sample
from tests.adoption.world import Adopted

from .migrations import karpenter, lines


class SandboxCluster:
    """A cluster and its AWS, in memory."""

    live = True
    withheld: Sequence[str] = ("ServiceAccount",)

    def __init__(self, play: Adopted) -> None:
        self._play = play
        self.manifests = {
            kind.name: [dict(row.manifest) for row in play.world.server.select(kind, "", "", "")]
            for kind in (kinds.NODE_POOL, kinds.NODE_CLASS, kinds.NODE_CLAIM)
        }
        self.manifests["Deployment"] = [karpenter()]

    def snapshot(self, options: Options) -> Snapshot:
        play = self._play
        found = look(play.world.kube, play.cloud, Settings(cluster_name=options.cluster_name), play.world.clock)
        return replace(found, instances=InstanceIndex.of({row.id: row for row in play.cloud.instances()}))

    def rights(self, options: Options) -> tuple[Finding, ...]:
        return (Finding("patch nodes", "ok"), Finding("ec2:DescribeSubnets", "wrong", "no leave", "allow it"))


@pytest.fixture
def play() -> Adopted:
    made = Adopted(sample.manifests(), cluster=sample.CLUSTER)
    made.settle()
    return made


def test_rights_that_are_missing_are_in_the_way(play: Adopted) -> None:
    """Those that are there are counted."""
    answer = migrate_page.sections(SandboxCluster(play), ())
    assert [(one.what, one.how) for one in answer["rights"]] == [
        ("Rights in the cluster and in the account", "ok"),
        ("ec2:DescribeSubnets", "wrong"),
    ]
    assert answer["rights"][0].seen == "2 asked for"
    assert migrate_page.in_the_way(answer)
    assert lines(migrate_page.text(answer), "WRONG", "ec2:DescribeSubnets", "no leave")


def test_nodes_that_cannot_be_judged_are_in_the_way_and_all_else_is_told(play: Adopted) -> None:
    play.seam.fails["cloud", "region"] = Unavailable("AWS does not answer")
    answer = migrate_page.sections(SandboxCluster(play), ())
    assert [(one.how, one.seen) for one in answer["nodes"]] == [("wrong", "cannot be judged: AWS does not answer")]
    assert answer["objects"]


def found(play: Adopted) -> dict[str, Finding]:
    """What is said of nodes, by what it is about; the cluster's name comes from Karpenter's Deployment."""
    return {one.what: one for one in migrate_page.sections(SandboxCluster(play), ())["nodes"]}


def test_a_sound_cluster_and_its_aws(play: Adopted) -> None:
    nodes = found(play)
    assert nodes["Drift"].how == "ok"
    assert nodes["Consolidation"].how == "ok"
    assert "AWS" not in nodes


def test_a_new_image_would_replace_the_nodes_of_its_class(play: Adopted) -> None:
    facts = play.cloud.facts["web"]
    play.cloud.facts["web"] = replace(
        facts, images=(replace(facts.images[0], id="ami-0000000000000face"), *facts.images[1:])
    )
    play.live(seconds=5)
    before = play.objects()
    nodes = found(play)
    assert "web-00000" in nodes["Drifted by AMIDrift"].seen
    assert play.objects() == before


def test_nodes_that_would_be_consolidated(play: Adopted) -> None:
    """All pods of a pool but one leave; its policy lets nodes in use go, and there is room for what is left."""
    for number in range(1, sample.EACH):
        play.world.delete("Pod", f"web-{number}")
    play.world.server.patch(kinds.REPLICA_SET, "default", "web", {"spec": {"replicas": 1}})
    play.world.run(None, timedelta(minutes=5))
    nodes = found(play)
    assert nodes["Consolidation"].how == "doubtful"
    assert "less an hour" in nodes["Consolidation"].seen
    assert "web-0000" in nodes["Consolidation"].seen
