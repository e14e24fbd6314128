"""A NodePool, a class's types or a pod with which solving fails is left out; all others are served."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from msgspec.structs import replace as changed

from kerf.model.aws.instance_type import Catalogue
from kerf.model.kubernetes.objects import Pod, Toleration
from kerf.model.plan import CreateNodeClaim, Plan
from kerf.model.snapshot import Batch
from kerf.provisioning.provision import provision
from kerf_api import labels
from kerf_api.v1.meta import Taint
from tests.unit.scheduling import worlds as w

CLOSED = Batch(w.NOW.replace(hour=11), w.NOW.replace(hour=11))
#: Types that nobody can reckon with: what they offer has no price, not even none.
NONSENSE: Catalogue = (replace(w.CATALOGUE[0], offerings=(replace(w.CATALOGUE[0].offerings[0], price=None),)),)  # type: ignore[arg-type]


def senseless(pod: Pod) -> Pod:
    """A pod that makes any solve fail."""
    return changed(pod, spec=changed(pod.spec, volumes=(None,)))


def of_class(name: str, class_name: str, **spec: Any) -> Any:
    made = w.pool(name, **spec)
    ref = changed(made.spec.template.spec.node_class_ref, name=class_name)
    template = changed(made.spec.template, spec=changed(made.spec.template.spec, node_class_ref=ref))
    return changed(made, spec=changed(made.spec, template=template))


def planned(*objects: Any, **facts: Any) -> Plan:
    return provision(w.world(*objects, batch=CLOSED, **facts))


def pools_of(plan: Plan) -> set[str]:
    return {a.claim.pool_name for a in plan.actions if isinstance(a, CreateNodeClaim)}


def refused(plan: Plan) -> dict[str, str]:
    return {refusal.subject: refusal.reason.code for refusal in plan.refusals}


def test_types_that_make_no_sense_cost_the_pools_of_their_class_only() -> None:
    catalogues = {"default": w.CATALOGUE, "odd": NONSENSE}
    taints = [{"key": "a", "effect": "NoSchedule"}]
    pools = (w.pool("sound"), of_class("odd", "odd", weight=100), of_class("odd-too", "odd", taints=taints))
    plan = planned(*pools, w.replicas(3, "p"), catalogues=catalogues)
    assert pools_of(plan) == {"sound"}
    assert refused(plan) == {"nodepool/odd": "InternalError", "nodepool/odd-too": "InternalError"}
    assert {e.ref.name for e in plan.events if e.reason == "InternalError"} == {"odd", "odd-too"}


def test_a_pod_that_makes_no_sense_is_refused_alone() -> None:
    pods = w.replicas(9, "p")
    plan = planned(w.pool(), [*pods[:4], senseless(pods[4]), *pods[5:]])
    assert pools_of(plan) == {"default"}
    assert refused(plan) == {f"pod/{pods[4].key}": "InternalError"}
    assert len(plan.nominations) == 8


def trap(pod: Pod, tried: list[str]) -> Pod:
    """A pod that looks sane, but whose toleration cannot be compared with a taint; `tried` gets a row for each try."""

    class Trap(Toleration, frozen=True):
        def tolerates(self, taint: Taint) -> bool:
            tried.append(pod.key)
            raise TypeError("no taint at all")

    return changed(pod, spec=changed(pod.spec, tolerations=(Trap(),)))


SHUT: dict[str, Any] = {"taints": [{"key": "a", "effect": "NoSchedule"}]}


def test_a_pod_that_fails_with_one_pool_costs_that_pool_nothing() -> None:
    guest = w.pod("guest", tolerations=[{"key": "a", "operator": "Exists"}], nodeSelector={"kind": "shut"})
    shut = w.pool("shut", **SHUT, requirements=[{"key": "kind", "operator": "In", "values": ["shut"]}])
    plan = planned(shut, w.pool(), guest, w.replicas(3, "p"), trap(w.pod("odd"), []))
    assert pools_of(plan) == {"shut", "default"}
    assert refused(plan) == {"pod/default/odd": "InternalError"}
    assert plan.actions == planned(shut, w.pool(), guest, w.replicas(3, "p")).actions


def test_pods_of_one_shape_stand_and_fall_together() -> None:
    tried: list[str] = []
    odd = [trap(pod, tried) for pod in w.replicas(40, "odd", "200m")]
    plan = planned(w.pool(**SHUT), w.pool("open"), odd, w.replicas(40, "p"))
    assert refused(plan) == {f"pod/default/odd-{i}": "InternalError" for i in range(40)}
    assert len(plan.nominations) == 40
    assert len(tried) <= 3


def test_what_is_spent_on_finding_the_guilty_is_bounded_and_nobody_waits_for_ever() -> None:
    tried: list[str] = []
    odd = [trap(w.pod(f"odd-{i}", f"{i + 1}m"), tried) for i in range(200)]
    sane = [w.pod(f"p-{i}", f"{i + 1}m") for i in range(0, 200, 20)]
    served: set[str] = set()
    for second in range(0, 120, 10):
        now = w.NOW + timedelta(seconds=second)
        plan = planned(w.pool(**SHUT), w.pool("open"), odd, sane, now=now)
        assert len(tried) <= 150
        tried.clear()
        assert len(plan.refusals) + len(plan.nominations) == 210
        served |= {nomination.pod_uid for nomination in plan.nominations}
    assert served == {pod.metadata.uid for pod in sane}


def test_a_pod_that_fails_beside_a_sane_one_of_its_shape_takes_its_own_kind_only() -> None:
    nonsense: Any = 7
    apart = {"maxSkew": 1, "topologyKey": labels.HOSTNAME, "labelSelector": {"matchLabels": {"app": "kind"}}}
    kind = w.replicas(3, "kind", "200m", topologySpreadConstraints=[apart])
    kind[1] = changed(kind[1], metadata=changed(kind[1].metadata, labels=nonsense))
    plan = planned(w.pool(), kind, w.replicas(5, "p"))
    assert len(plan.nominations) == 5
    assert set(refused(plan).values()) == {"InternalError"}


def test_both_at_once() -> None:
    catalogues = {"default": w.CATALOGUE, "odd": NONSENSE}
    pods = w.replicas(3, "p")
    pools = (w.pool("sound"), of_class("odd", "odd", weight=100))
    plan = planned(*pools, [*pods[:2], senseless(pods[2])], catalogues=catalogues)
    assert pools_of(plan) == {"sound"}
    assert refused(plan) == {"nodepool/odd": "InternalError", f"pod/{pods[2].key}": "InternalError"}


def test_an_amount_beyond_all_measure_finds_no_place_and_takes_none() -> None:
    plan = planned(w.pool(), w.pod("huge", "1e30"), w.pod("small"))
    assert len(plan.nominations) == 1
    assert refused(plan) == {"pod/default/huge": "Incompatible"}
