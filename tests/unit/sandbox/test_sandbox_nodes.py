"""From a fleet call to a Node with running pods, and back."""

from __future__ import annotations

import pytest

from kerf.ec2.userdata import userdata
from kerf.ec2.userdata.bootstrap import Bootstrap
from kerf.model.kinds import Ref
from kerf.ports import AlreadyGone
from kerf.sandbox.nodes import user_data
from kerf.sandbox.nodes.kubelets import COMPLETES_AFTER, NOT_READY, STOPS_AFTER
from kerf.sandbox.weather import Weather
from kerf.sandbox.world import World
from kerf_api import labels
from kerf_api.v1.meta import Taint

from .sandbox_world import USER_DATA, deployment, launch, node, nodes, places, pod, pods, wait


def test_node_registers_as_its_user_data_says() -> None:
    world = World(weather=Weather(launch_seconds=3, boot_seconds=20, ready_seconds=5))
    world.cloud.create_fleet(launch(world, "a", user_data=USER_DATA))
    wait(world, 22)
    assert nodes(world) == []
    wait(world, 2)
    (young,) = nodes(world)
    assert not young.ready
    assert {(t.key, t.effect) for t in young.spec.taints} == {
        ("team", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
    }
    wait(world, 6)
    (one,) = nodes(world)
    assert one.ready
    assert [t.key for t in one.spec.taints] == ["team"]
    assert (one.metadata.labels["pool"], one.metadata.labels[labels.INSTANCE_TYPE]) == ("one", "m6i.large")
    assert one.spec.provider_id == f"aws:///us-west-2a/{next(iter(world.ec2.instances))}"
    assert one.status.capacity["pods"] == "29"


def test_instance_without_words_for_its_kubelet_comes_unregistered() -> None:
    world = World()
    world.cloud.create_fleet(launch(world, "a"))
    wait(world, 60)
    assert [str(t) for t in nodes(world)[0].spec.taints] == ["karpenter.sh/unregistered:NoExecute"]


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (
            "#!/bin/bash -xe\n/etc/eks/bootstrap.sh 'c' --use-max-pods false \\\n--kubelet-extra-args "
            '\'--node-labels="a=1,b=2" --register-with-taints="t=v:NoSchedule,u:NoExecute" --max-pods=17\'',
            "AL2",
        ),
        (
            '[settings.kubernetes]\nmax-pods = 17\n[settings.kubernetes.node-labels]\na = "1"\nb = "2"\n'
            '[settings.kubernetes.node-taints]\nt = ["v:NoSchedule"]\nu = [":NoExecute"]\n',
            "Bottlerocket",
        ),
    ],
)
def test_user_data_of_other_families(text: str, family: str) -> None:
    settings = user_data.read(text)
    assert settings.family == family
    assert settings.labels == {"a": "1", "b": "2"}
    assert [str(taint) for taint in settings.taints] == ["t=v:NoSchedule", "u:NoExecute"]
    assert settings.kubelet["maxPods"] == 17


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2022"])
def test_what_launch_templates_say_is_understood(family: str) -> None:
    taints = (Taint(key="t", value="v", effect="NoSchedule"), Taint(key=labels.UNREGISTERED_TAINT, effect="NoExecute"))
    inputs = Bootstrap(
        cluster=World().cloud.cluster(),
        custom=None,
        labels={"a": "1", "example.com/b": "2"},
        taints=taints,
        kubelet={"kubeReserved": {"cpu": "200m"}},
        max_pods=17,
        raid0=False,
    )
    text = userdata.render(family, inputs)
    settings = user_data.read(text)
    assert settings.family == family
    assert settings.labels == {"a": "1", "example.com/b": "2"}
    assert sorted(map(str, settings.taints)) == sorted(map(str, taints))
    assert (settings.kubelet["maxPods"], settings.kubelet["kubeReserved"]) == (17, {"cpu": "200m"})


def test_gpus_appear_with_readiness() -> None:
    world = World(weather=Weather(launch_seconds=1, boot_seconds=1, ready_seconds=10))
    world.cloud.create_fleet(launch(world, "a", types=("g4dn.12xlarge",)))
    wait(world, 5)
    assert "nvidia.com/gpu" not in nodes(world)[0].status.allocatable
    wait(world, 10)
    assert nodes(world)[0].status.allocatable["nvidia.com/gpu"] == "4"


def test_instance_that_fails_to_boot_never_becomes_a_node() -> None:
    world = World(weather=Weather(boot_failure_rate=1.0))
    world.cloud.create_fleet(launch(world, "a"))
    wait(world, 600)
    assert nodes(world) == []
    assert [m.state for m in world.ec2.instances.values()] == ["running"]


def test_vanished_instance_takes_its_node_and_pods_are_replaced() -> None:
    world = World()
    world.cloud.create_fleet(launch(world, "a", "b", user_data=USER_DATA))
    world.apply(deployment("web", 2, tolerations=[{"key": "team", "operator": "Exists"}]))
    wait(world, 60)
    first, second = sorted(places(world).values())
    assert first != second
    lost = next(n for n in nodes(world) if n.name == first)
    world.cloud.terminate(lost.spec.provider_id.rpartition("/")[2])
    wait(world, 50)
    assert {n.name for n in nodes(world)} == {first, second}
    wait(world, 70)
    assert {n.name for n in nodes(world)} == {second}
    assert set(places(world).values()) == {second}
    assert all(one.status.phase == "Running" for one in pods(world))


def test_node_with_a_finalizer_waits_for_its_controller() -> None:
    world = World()
    world.cloud.create_fleet(launch(world, "a", user_data=USER_DATA))
    wait(world, 60)
    ref = Ref("Node", "", nodes(world)[0].name)
    world.kube.patch(ref, {"metadata": {"finalizers": [labels.TERMINATION_FINALIZER]}})
    world.cloud.terminate(next(iter(world.ec2.instances)))
    wait(world, 120)
    one = world.kube.get(ref)
    assert one.metadata.deleting
    assert {t.key for t in one.spec.taints} == {"team", "node.kubernetes.io/unreachable"}
    world.kube.patch(ref, {"metadata": {"finalizers": None}})
    assert nodes(world) == []


def test_pods_start_stop_and_complete_when_they_should() -> None:
    world = World(weather=Weather(pod_start_seconds=2, pod_stop_seconds=3))
    world.apply(node("one"))
    manifest = pod("job")
    manifest["metadata"]["annotations"] = {COMPLETES_AFTER: "30"}
    slow = pod("slow", terminationGracePeriodSeconds=60)
    slow["metadata"]["annotations"] = {STOPS_AFTER: "45"}
    for one in (manifest, slow, pod("quick")):
        world.apply(one)
    wait(world, 10)
    assert {one.status.phase for one in pods(world)} == {"Running"}
    world.delete("Pod", "slow")
    world.delete("Pod", "quick")
    wait(world, 4)
    assert set(places(world)) == {"job", "slow"}
    wait(world, 45)
    assert [(one.metadata.name, one.status.phase) for one in pods(world)] == [("job", "Succeeded")]


def test_no_execute_taint_casts_out_who_does_not_bear_it() -> None:
    world = World()
    world.apply(node("one"))
    patient = [{"key": "out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    world.apply(pod("plain"))
    world.apply(pod("patient", tolerations=patient))
    world.apply(pod("hardy", tolerations=[{"operator": "Exists"}]))
    wait(world, 20)
    world.kube.patch(Ref("Node", "", "one"), {"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})
    wait(world, 10)
    assert set(places(world)) == {"patient", "hardy"}
    wait(world, 60)
    assert set(places(world)) == {"hardy"}


def test_node_that_is_not_ready_is_tainted_until_it_is() -> None:
    world = World()
    world.apply(node("one"))
    wait(world, 10)
    ref = Ref("Node", "", "one")
    world.kube.patch(ref, {"metadata": {"annotations": {NOT_READY: "true"}}})
    wait(world, 1)
    assert {t.key for t in world.kube.get(ref).spec.taints} == {"node.kubernetes.io/not-ready"}
    world.kube.patch(ref, {"metadata": {"annotations": {NOT_READY: None}}})
    wait(world, 1)
    assert world.kube.get(ref).spec.taints == ()
    assert world.kube.get(ref).ready


def test_pods_of_a_deleted_node_are_forgotten() -> None:
    world = World(weather=Weather(pod_gc_seconds=20))
    world.apply(node("one"))
    world.apply(pod("a"))
    wait(world, 10)
    world.delete("Node", "one")
    wait(world, 19)
    assert set(places(world)) == {"a"}
    wait(world, 2)
    assert places(world) == {}
    with pytest.raises(AlreadyGone):
        world.kube.get(Ref("Node", "", "one"))
