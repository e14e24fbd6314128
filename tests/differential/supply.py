"""Features of what pods are placed on: NodePools, nodes, daemon sets, offerings and volumes. Each changes a draft."""

from __future__ import annotations

from kerf_api import labels
from tests.differential.draft import CATEGORY, FAMILY, TEAM, ZONES, Draft, Json, template_spec
from tests.differential.wishes import taint

_LATE = "WaitForFirstConsumer"


# --- NodePools ----------------------------------------------------------------------------------------------------
def weight(draft: Draft) -> None:
    if len(draft.pools) < 2:
        draft.add_pool()
    for pool in draft.pools:
        pool["spec"]["weight"] = draft.dice.choice((1, 10, 10, 50))


def limits(draft: Draft) -> None:
    for pool in draft.dice.sample(draft.pools, draft.dice.randint(1, len(draft.pools))):
        rows: list[Json] = [{"cpu": "4"}, {"cpu": "8"}, {"cpu": "16", "memory": "32Gi"}, {"memory": "16Gi"}]
        pool["spec"].setdefault("limits", {}).update(draft.dice.choice(rows))


def node_limits(draft: Draft) -> None:
    draft.pool()["spec"].setdefault("limits", {})["nodes"] = draft.dice.choice(("0", "1", "2", "3"))


def template_labels(draft: Draft) -> None:
    pool = draft.pool()
    if not any(row["key"] == TEAM for row in template_spec(pool)["requirements"]):
        value = draft.dice.choice(("blue", "red"))
        pool["spec"]["template"]["metadata"]["labels"][TEAM] = value
        draft.workload().spec.setdefault("nodeSelector", {})[TEAM] = value


def template_taints(draft: Draft) -> None:
    taint(draft, draft.pool(), draft.dice.choice(("NoSchedule", "NoExecute")))


def startup_taints(draft: Draft) -> None:
    pool = draft.pool()
    template_spec(pool)["startupTaints"] = [{"key": "network/not-ready", "effect": "NoSchedule"}]
    if draft.dice.random() < 0.6:
        draft.add_node("in-flight").template = pool


def requirements(draft: Draft) -> None:
    """What NodePools restrict."""
    dice = draft.dice
    rows: list[Json] = [
        {"key": labels.ZONE, "operator": "In", "values": sorted(dice.sample(ZONES, 2))},
        {"key": labels.ZONE, "operator": "NotIn", "values": [draft.zone()]},
        {"key": labels.CAPACITY_TYPE, "operator": "In", "values": [labels.ON_DEMAND]},
        {"key": labels.ARCH, "operator": "In", "values": ["amd64"]},
        {"key": CATEGORY, "operator": "In", "values": [dice.choice(draft.types)["labels"][CATEGORY]]},
    ]
    template_spec(draft.pool())["requirements"].append(dice.choice(rows))


def min_values_strict(draft: Draft) -> None:
    draft.settings["minValuesPolicy"] = "Strict"
    _min_values(draft)


def min_values_best_effort(draft: Draft) -> None:
    draft.settings["minValuesPolicy"] = "BestEffort"
    _min_values(draft)


def _min_values(draft: Draft) -> None:
    key, least = draft.dice.choice(((labels.INSTANCE_TYPE, 2), (labels.INSTANCE_TYPE, 4), (FAMILY, 2)))
    rows = template_spec(draft.pool())["requirements"]
    rows.append({"key": key, "operator": "Exists", "minValues": least})


def ignored_preferences(draft: Draft) -> None:
    draft.settings["preferencePolicy"] = "Ignore"


# --- nodes --------------------------------------------------------------------------------------------------------
def existing_nodes(draft: Draft) -> None:
    for _ in range(draft.dice.randint(1, 3)):
        draft.add_node("existing")


def in_flight_nodes(draft: Draft) -> None:
    for _ in range(draft.dice.randint(1, 2)):
        draft.add_node("in-flight")


def deleting_nodes(draft: Draft) -> None:
    draft.run(draft.workload(), draft.add_node("deleting"))


def unmanaged_nodes(draft: Draft) -> None:
    draft.add_node("unmanaged")


def daemon_sets(draft: Draft) -> None:
    for number in range(draft.dice.randint(1, 2)):
        requests = {"cpu": draft.dice.choice(("100m", "300m")), "memory": draft.dice.choice(("64Mi", "500Mi"))}
        spec: Json = {"containers": [{"name": "main", "image": "agent", "resources": {"requests": requests}}]}
        if draft.dice.random() < 0.5:
            spec["tolerations"] = [{"operator": "Exists"}]
        if draft.dice.random() < 0.4:
            spec["nodeSelector"] = {CATEGORY: draft.dice.choice(draft.types)["labels"][CATEGORY]}
        name, own = f"agent-{number}", {"app": f"agent-{number}"}
        template = {"metadata": {"labels": own}, "spec": spec}
        draft.daemon_sets.append(
            {
                "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
                "spec": {"selector": {"matchLabels": own}, "template": template},
            }
        )


# --- offerings ----------------------------------------------------------------------------------------------------
def sold_out(draft: Draft) -> None:
    """What is to be had differs by zone and market."""
    zone = draft.zone()
    for row in draft.types:
        for sold in row["offerings"]:
            if draft.dice.random() < (0.7 if sold["zone"] == zone else 0.15):
                sold["available"] = False


def not_sold(draft: Draft) -> None:
    """Some types are not sold as spot, or not in a zone."""
    for row in draft.types:
        if draft.dice.random() < 0.5:
            lost = draft.dice.choice((labels.SPOT, draft.zone()))
            row["offerings"] = [s for s in row["offerings"] if lost not in (s["capacityType"], s["zone"])]


# --- volumes ------------------------------------------------------------------------------------------------------
def bound_volumes(draft: Draft) -> None:
    """Each pod's volume is somewhere already, some of them in any of two zones."""
    workload = draft.workload()
    for number in range(workload.count):
        name = f"{workload.name}-{number}-data"
        zones = [draft.zone()] if draft.dice.random() < 0.8 else list(ZONES[:2])
        term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": zones}]}
        spec = {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        draft.store("persistentVolumes", {"metadata": {"name": f"pv-{name}", "uid": f"uid-pv-{name}"}, "spec": spec})
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = _claim("{pod}-data", workload.namespace, {"volumeName": "pv-{pod}-data"})
    claim["metadata"]["annotations"] = done
    claim["status"] = {"phase": "Bound"}
    workload.storage.append(("persistentVolumeClaims", claim))
    _mount(workload.spec, {"name": "data", "persistentVolumeClaim": {"claimName": "{pod}-data"}})


def late_volumes(draft: Draft) -> None:
    """Volumes that are made where the pod goes."""
    name = _storage_class(draft, [])
    _late_claim(draft, name)


def allowed_topologies(draft: Draft) -> None:
    zones = sorted(draft.dice.sample(ZONES, draft.dice.randint(1, 2)))
    terms = [{"matchLabelExpressions": [{"key": labels.ZONE, "values": [zone]}]} for zone in zones]
    if draft.dice.random() < 0.3:
        terms = [{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": zones}]}]
    _late_claim(draft, _storage_class(draft, terms))


def ephemeral_volumes(draft: Draft) -> None:
    """The claim of each is there already, as its controller makes it."""
    name = _storage_class(draft, [{"matchLabelExpressions": [{"key": labels.ZONE, "values": [draft.zone()]}]}])
    workload = draft.workload()
    template = {"spec": {"storageClassName": name, "accessModes": ["ReadWriteOnce"]}}
    claim = _claim("{pod}-scratch", workload.namespace, {"storageClassName": name})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "{pod}", "uid": f"uid-{workload.namespace}-{{pod}}"}
    claim["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    workload.storage.append(("persistentVolumeClaims", claim))
    _mount(workload.spec, {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}})


def _late_claim(draft: Draft, class_name: str) -> None:
    workload = draft.workload()
    claim = _claim(f"{{pod}}-{class_name}", workload.namespace, {"storageClassName": class_name})
    workload.storage.append(("persistentVolumeClaims", claim))
    _mount(workload.spec, {"name": class_name, "persistentVolumeClaim": {"claimName": f"{{pod}}-{class_name}"}})


def _storage_class(draft: Draft, terms: list[Json]) -> str:
    name = f"late-{len(draft.storage.get('storageClasses', []))}"
    made: Json = {"metadata": {"name": name, "uid": f"uid-{name}"}, "provisioner": "ebs.csi.aws.com"}
    made["volumeBindingMode"] = _LATE
    if terms:
        made["allowedTopologies"] = terms
    draft.store("storageClasses", made)
    return name


def _claim(name: str, namespace: str, spec: Json) -> Json:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-pvc-{namespace}-{name}"},
        "spec": {"accessModes": ["ReadWriteOnce"], **spec},
        "status": {"phase": "Pending"},
    }


def _mount(spec: Json, volume: Json) -> None:
    spec.setdefault("volumes", []).append(volume)
