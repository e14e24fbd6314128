"""Features of pods: what they ask for, where they want to be, and beside whom. Each changes a draft."""

from __future__ import annotations

from typing import Any, Final

from kerf_api import labels
from tests.differential.draft import (
    CATEGORY,
    CPUS,
    GPU,
    PREFERRED,
    REQUIRED,
    TEAM,
    ZONES,
    Draft,
    Json,
    Workload,
    instance_type,
    template_spec,
)

_DOMAINS: Final = (labels.ZONE, labels.ZONE, labels.HOSTNAME, labels.CAPACITY_TYPE)
_COMPANY: Final = (labels.ZONE, labels.HOSTNAME, labels.HOSTNAME)


# --- requests -----------------------------------------------------------------------------------------------------
def init_containers(draft: Draft) -> None:
    _first(draft, {"cpu": draft.dice.choice(("1", "1800m", "3")), "memory": "256Mi"})


def sidecars(draft: Draft) -> None:
    _first(draft, {"cpu": draft.dice.choice(("100m", "400m")), "memory": "700Mi"}, restartPolicy="Always")


def _first(draft: Draft, requests: Json, **more: Any) -> None:
    rows = draft.workload().spec.setdefault("initContainers", [])
    rows.append({"name": f"first-{len(rows)}", "image": "app", "resources": {"requests": requests}, **more})


def overhead(draft: Draft) -> None:
    draft.workload().spec["overhead"] = {"cpu": draft.dice.choice(("250m", "1")), "memory": "160Mi"}


def pod_level_resources(draft: Draft) -> None:
    draft.workload().spec["resources"] = {"requests": {"cpu": draft.dice.choice(("2", "3500m")), "memory": "4Gi"}}


def extended_resources(draft: Draft) -> None:
    if not any(GPU in row["capacity"] for row in draft.types):
        draft.types += [instance_type(draft.dice, "m", cpus, gpus=cpus // 4) for cpus in (4, 8)]
    resources = draft.workload().container["resources"]
    amount = draft.dice.choice(("1", "1", "2"))
    resources["requests"][GPU] = amount
    resources.setdefault("limits", {})[GPU] = amount


def host_ports(draft: Draft) -> None:
    for workload in (draft.several(), draft.workload()):
        workload.container["ports"] = [
            {"containerPort": 80, "hostPort": draft.dice.choice((80, 80, 81)), "protocol": "TCP"}
        ]


def priorities(draft: Draft) -> None:
    for workload in draft.workloads:
        workload.spec["priority"] = draft.dice.choice((0, 100, 1000))


# --- nodes --------------------------------------------------------------------------------------------------------
def _team(draft: Draft) -> str:
    """A value of a label that a NodePool gives its nodes."""
    pool = draft.pool()
    rows = template_spec(pool)["requirements"]
    if not any(row["key"] == TEAM for row in rows) and TEAM not in pool["spec"]["template"]["metadata"]["labels"]:
        rows.append({"key": TEAM, "operator": "In", "values": ["blue", "red"]})
    return draft.dice.choice(("blue", "red"))


def node_selector(draft: Draft) -> None:
    choices: list[tuple[str, str]] = [
        (labels.ZONE, draft.zone()),
        (labels.CAPACITY_TYPE, labels.ON_DEMAND),
        (CATEGORY, draft.dice.choice(draft.types)["labels"][CATEGORY]),
        (labels.ARCH, draft.dice.choice(draft.types)["arch"]),
        (TEAM, _team(draft)),
    ]
    draft.workload().spec.setdefault("nodeSelector", {}).update([draft.dice.choice(choices)])


def _expression(draft: Draft) -> Json:
    """What a node may be asked; one in seven can never be."""
    dice = draft.dice
    rows: list[tuple[str, str, list[str]]] = [
        (labels.ZONE, "In", sorted(dice.sample(ZONES, dice.randint(1, 2)))),
        (labels.ZONE, "NotIn", [draft.zone()]),
        (labels.CAPACITY_TYPE, "In", [dice.choice((labels.SPOT, labels.ON_DEMAND))]),
        (CATEGORY, "In", [dice.choice(draft.types)["labels"][CATEGORY]]),
        (CPUS, dice.choice(("Gt", "Lt")), [dice.choice(("2", "4"))]),
        (TEAM, dice.choice(("NotIn", "DoesNotExist")), ["red"]),
        ("nobody/knows", "In", ["this"]),
    ]
    key, operator, values = dice.choice(rows)
    return {"key": key, "operator": operator, **({} if operator == "DoesNotExist" else {"values": values})}


def required_terms(draft: Draft) -> None:
    terms = draft.workload().affinity("nodeAffinity", REQUIRED)
    for _ in range(draft.dice.randint(2, 3)):
        terms.append({"matchExpressions": [_expression(draft) for _ in range(draft.dice.choice((1, 1, 2)))]})


def preferred_terms(draft: Draft) -> None:
    terms = draft.workload().affinity("nodeAffinity", PREFERRED)
    for weight in draft.dice.sample((1, 10, 50, 90), draft.dice.randint(1, 3)):
        terms.append({"weight": weight, "preference": {"matchExpressions": [_expression(draft)]}})


def tolerations(draft: Draft) -> None:
    taint(draft, draft.pool(), "NoSchedule")
    rows: list[Json] = [{"key": TEAM, "operator": "Exists"}, {"key": TEAM, "value": "red", "effect": "NoSchedule"}]
    draft.workload().spec.setdefault("tolerations", []).append(draft.dice.choice(rows))


def taint(draft: Draft, pool: Json, effect: str) -> None:
    """Mostly there is another NodePool for those who do not tolerate it."""
    if len(draft.pools) < 2 and draft.dice.random() < 0.8:
        draft.add_pool()
    rows = template_spec(pool).setdefault("taints", [])
    if not any(row["effect"] == effect for row in rows):
        rows.append({"key": TEAM, "value": draft.dice.choice(("red", "red", "blue")), "effect": effect})


def prefer_no_schedule(draft: Draft) -> None:
    taint(draft, draft.pool(), "PreferNoSchedule")


# --- spread -------------------------------------------------------------------------------------------------------
def spread(draft: Draft) -> None:
    draft.several().spread(draft.dice.choice(_DOMAINS), maxSkew=draft.dice.choice((1, 1, 2)))


def min_domains(draft: Draft) -> None:
    draft.several().spread(labels.ZONE, minDomains=draft.dice.randint(2, 4))


def node_affinity_policy(draft: Draft) -> None:
    workload = draft.several()
    workload.spread(labels.ZONE, nodeAffinityPolicy=draft.dice.choice(("Honor", "Ignore", "Ignore")))
    workload.spec.setdefault("nodeSelector", {})[labels.CAPACITY_TYPE] = labels.ON_DEMAND


def node_taints_policy(draft: Draft) -> None:
    if len(draft.pools) < 2:
        draft.add_pool()
    shy = draft.pool()
    taint(draft, shy, "NoSchedule")
    template_spec(shy)["requirements"].append({"key": labels.ZONE, "operator": "In", "values": [draft.zone()]})
    draft.several().spread(labels.ZONE, nodeTaintsPolicy=draft.dice.choice(("Honor", "Honor", "Ignore")))


def match_label_keys(draft: Draft) -> None:
    old = draft.several()
    new = draft.add_workload(old.namespace)
    new.labels["app"] = old.labels["app"]
    for workload, version in ((old, "1"), (new, "2")):
        workload.labels["version"] = version
        workload.spread(draft.dice.choice((labels.ZONE, labels.HOSTNAME)), matchLabelKeys=["version"])


def schedule_anyway(draft: Draft) -> None:
    draft.several().spread(draft.dice.choice(_DOMAINS), whenUnsatisfiable="ScheduleAnyway")


# --- company ------------------------------------------------------------------------------------------------------
def _term(draft: Draft, owner: Workload, meant: Workload) -> Json:
    found: Json = {"topologyKey": draft.dice.choice(_COMPANY), "labelSelector": meant.app}
    if meant.namespace != owner.namespace:
        found["namespaces"] = [meant.namespace]
    return found


def _company(draft: Draft, kind: str, strength: str, meant: Workload | None = None) -> None:
    """A workload of the namespace default that wants or shuns its like, or others."""
    owner = draft.several() if draft.dice.random() < 0.6 else draft.workload()
    if owner is meant:
        owner = draft.workloads[0]
    term = _term(draft, owner, meant or draft.dice.choice((owner, owner, draft.workload())))
    if strength == PREFERRED:
        term = {"weight": draft.dice.choice((1, 50, 100)), "podAffinityTerm": term}
    owner.affinity(kind, strength).append(term)


def pod_affinity(draft: Draft) -> None:
    _company(draft, "podAffinity", REQUIRED)


def pod_anti_affinity(draft: Draft) -> None:
    _company(draft, "podAntiAffinity", REQUIRED)


def preferred_pod_affinity(draft: Draft) -> None:
    _company(draft, "podAffinity", PREFERRED)


def preferred_pod_anti_affinity(draft: Draft) -> None:
    _company(draft, "podAntiAffinity", PREFERRED)


def inverse_anti_affinity(draft: Draft) -> None:
    """A pod that runs shuns those that come, while they do not shun it."""
    shunned, shy = draft.workload(), draft.add_workload()
    shy.count = draft.dice.randint(0, 1)
    shy.affinity("podAntiAffinity", REQUIRED).append(_term(draft, shy, shunned))
    draft.run(shy, draft.add_node("existing"))


def namespaces(draft: Draft) -> None:
    there = draft.add_workload("other")
    kind = draft.dice.choice(("podAffinity", "podAntiAffinity"))
    _company(draft, kind, REQUIRED, there)
    if draft.dice.random() < 0.5:
        draft.run(there, draft.add_node("existing"))


def namespace_selector(draft: Draft) -> None:
    """Some name those of a kind of namespace, some all of them (an empty selector)."""
    draft.namespaces = {"prod": {"stage": "prod"}, "test": {"stage": "test"}}
    there = [draft.add_workload(name) for name in sorted(draft.namespaces)]
    for one in there:
        one.labels["app"] = "api"
        if draft.dice.random() < 0.4:
            draft.run(one, draft.add_node("existing"))
    owner = draft.workload()
    selector: Json = draft.dice.choice(({"matchLabels": {"stage": "prod"}}, {}))
    term = {"topologyKey": draft.dice.choice(_COMPANY), "labelSelector": there[0].app, "namespaceSelector": selector}
    owner.affinity(draft.dice.choice(("podAffinity", "podAntiAffinity")), REQUIRED).append(term)
