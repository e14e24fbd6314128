"""A script is what a seed means: the manifests of a small cluster, what people and AWS do to it, and what fails when.

Deeds and faults are plain rows with a time each, independent of one another, so that a failing script can be made
shorter row by row. Seconds are virtual and count from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from reconciler.model import kinds
from reconciler.sandbox.weather import Weather
from tests.worlds import node_class

#: The storm lasts this long; what a user began ends with it.
STORM_SECONDS = 24 * 60
TYPES = ("c5.large", "c6i.large", "c6i.xlarge", "m5.large", "m6i.large", "m6i.xlarge", "m7g.large", "r6i.large")
TEAM = {"key": "team", "value": "data", "effect": "NoSchedule"}
_POOLS = ("general", "spot", "data")
_PLURALS = tuple(kind.plural for kind in kinds.WATCHED)
_WRITES = ("create", "patch", "delete", "evict")


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody does at an instant: a method of `Hands` and its arguments."""

    at: float
    verb: str
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.at:6.0f} s  {self.verb} {' '.join(str(a) for a in self.arguments)}"


@dataclass(frozen=True, slots=True)
class Fault:
    """What fails: the first call of these verbs from `at` on, or for `lasts` seconds every one.

    `error` is a port error's name, Crash (the controller dies there) or Silence (a watch shows nothing).
    """

    at: float
    error: str
    port: str
    verbs: tuple[str, ...]
    after: bool = False
    subject: str = ""
    lasts: float = 0.0

    def __str__(self) -> str:
        when = "after" if self.after else "before"
        what = f"{self.port} {'|'.join(self.verbs)} {self.subject}".rstrip()
        return f"{self.at:6.0f} s  {self.error} {when} {what}" + (f" for {self.lasts:.0f} s" if self.lasts else "")


@dataclass(frozen=True, slots=True)
class Script:
    """See the module. `expires` says that nodes have an end, so that the cluster never rests for long."""

    seed: int
    weather: Weather
    manifests: tuple[Mapping[str, Any], ...]
    deeds: tuple[Deed, ...]
    faults: tuple[Fault, ...]
    expires: bool = False
    #: Whether there is a queue that tells of interruptions.
    queue: bool = False

    @property
    def rows(self) -> tuple[Deed | Fault, ...]:
        return (*self.deeds, *self.faults)

    def only(self, rows: tuple[Deed | Fault, ...]) -> Script:
        """The same script with only these rows."""
        kept = set(rows)
        deeds = tuple(deed for deed in self.deeds if deed in kept)
        return replace(self, deeds=deeds, faults=tuple(fault for fault in self.faults if fault in kept))


def script(seed: int) -> Script:
    """The script of a seed."""
    dice = Random(seed)
    pools = {name: _pool(dice, name) for name in ("general", *dice.sample(_POOLS[1:], dice.randint(0, 2)))}
    apps = {f"app{n}": _deployment(dice, f"app{n}", "data" in pools) for n in range(dice.randint(1, 3))}
    pdbs = [_pdb(dice, name) for name in apps if dice.random() < 0.5]
    return Script(
        seed=seed,
        weather=_weather(dice),
        manifests=(node_class(), *pools.values(), _daemon_set(), *pdbs, *apps.values()),
        deeds=_deeds(dice, tuple(pools), tuple(apps)),
        faults=_faults(dice),
        queue=seed % 3 == 0,
        expires=any("expireAfter" in pool["spec"]["template"]["spec"] for pool in pools.values()),
    )


def _weather(dice: Random) -> Weather:
    return Weather(
        fleet_seconds=dice.choice((0.0, 0.0, 1.5)),
        describe_lag_seconds=dice.choice((0.0, 2.0, 10.0, 25.0)),
        boot_seconds=dice.choice((15.0, 40.0)),
        shutdown_seconds=dice.choice((5.0, 20.0, 60.0)),
        boot_failure_rate=dice.choice((0.0, 0.0, 0.1, 0.25)),
        stock_out_rate=dice.choice((0.0, 0.0, 0.2)),
    )


# --- the cluster ------------------------------------------------------------------------------------------------
def _pool(dice: Random, name: str) -> dict[str, Any]:
    """The general pool can host everything without limits, so that at the end every pod has a place."""
    bought = {"spot": ["spot"], "data": ["on-demand"]}.get(name) or dice.choice((["on-demand"], ["spot", "on-demand"]))
    template: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": bought}],
    }
    if name == "data":
        template["taints"] = [TEAM]
    if dice.random() < 0.2:
        template["expireAfter"] = "12m"
    if dice.random() < 0.3:
        template["terminationGracePeriod"] = dice.choice(("90s", "4m"))
    disruption = {
        "consolidationPolicy": dice.choice(("WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized")),
        "consolidateAfter": dice.choice(("0s", "30s", "2m")),
        "budgets": [{"nodes": dice.choice(("1", "2", "50%", "100%"))}],
    }
    spec = {"template": {"spec": template}, "disruption": disruption, "weight": dice.randint(1, 50)}
    if name != "general" and dice.random() < 0.5:
        spec["limits"] = {"cpu": str(dice.choice((4, 8)))}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _deployment(dice: Random, name: str, tainted: bool) -> dict[str, Any]:
    requests = {"cpu": dice.choice(("250m", "600m", "1")), "memory": dice.choice(("256Mi", "1Gi"))}
    pod: dict[str, Any] = {
        "containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": dice.choice((5, 30)),
    }
    selector = {"labelSelector": {"matchLabels": {"app": name}}}
    shape = dice.choice(("plain", "zones", "hosts", "alone"))
    if shape == "zones":
        spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        pod["topologySpreadConstraints"] = [{**spread, **selector}]
    elif shape == "hosts":
        spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        pod["topologySpreadConstraints"] = [{**spread, **selector}]
    elif shape == "alone":
        term = {"topologyKey": "kubernetes.io/hostname", **selector}
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if tainted and dice.random() < 0.5:
        pod["tolerations"] = [{"key": "team", "operator": "Exists"}]
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": dice.randint(1, 4), "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _pdb(dice: Random, app: str) -> dict[str, Any]:
    return pdb(app, dice.choice(({"maxUnavailable": 1}, {"maxUnavailable": "50%"})))


def pdb(app: str, limit: Mapping[str, Any]) -> dict[str, Any]:
    """The PodDisruptionBudget of an app."""
    metadata = {"name": app, "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": app}}, **limit}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def _daemon_set() -> dict[str, Any]:
    requests = {"cpu": "50m", "memory": "32Mi"}
    pod = {
        "containers": [{"name": "agent", "image": "agent", "resources": {"requests": requests}}],
        "tolerations": [{"key": "team", "operator": "Exists"}],
    }
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    metadata = {"name": "agent", "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


# --- what happens to it -----------------------------------------------------------------------------------------
def _deeds(dice: Random, pools: tuple[str, ...], apps: tuple[str, ...]) -> tuple[Deed, ...]:
    made = [_deed(dice, pools, apps) for _ in range(dice.randint(5, 12))]
    return tuple(sorted(made, key=lambda deed: (deed.at, deed.verb)))


def _deed(dice: Random, pools: tuple[str, ...], apps: tuple[str, ...]) -> Deed:
    """One thing that a person or AWS does. `pick` chooses one of what is there then: a number in [0, 1)."""
    at, pick = round(dice.uniform(60, STORM_SECONDS - 60), 1), min(round(dice.random(), 3), 0.999)
    pool, app, lasts = dice.choice(pools), dice.choice(apps), dice.randint(30, 400)
    rows: tuple[tuple[Any, ...], ...] = (
        ("scale", app, dice.randint(0, 6)),
        ("scale", app, dice.randint(0, 6)),
        ("delete_node", pick),
        ("delete_claim", pick),
        ("abandon_claim", pick),
        ("delete_pod", pick),
        ("delete_pool", pool, lasts),
        ("relabel_pool", pool, f"v{dice.randint(1, 3)}"),
        ("edit_budget", pool, dice.choice(("0", "1", "100%"))),
        ("change_image", dice.choice(("al2023@v20251201", "al2023@latest"))),
        ("reclaim", pick),
        ("end_instance", pick),
        ("stock_out", dice.choice(("*", *TYPES)), dice.choice(("spot", "on-demand", "*")), lasts),
        ("block", app, lasts),
        ("taint", pick, dice.choice(("NoSchedule", "NoExecute")), lasts),
        ("protect", pick, lasts),
        ("sicken", pick, lasts),
        ("untaint_disrupted", pick),
        ("roll", app, f"r{dice.randint(1, 9)}"),
        ("compact",),
        ("second_leader", dice.choice((5, 20, 60))),
        ("not_leading", dice.choice((10, 40))),
    )
    verb, *arguments = dice.choice(rows)
    return Deed(at, verb, tuple(arguments))


def _faults(dice: Random) -> tuple[Fault, ...]:
    made = [_fault(dice) for _ in range(dice.choice((0, 8, 16, 32)))]
    return tuple(sorted(made, key=lambda fault: (fault.at, str(fault))))


def _fault(dice: Random) -> Fault:
    at, lasts = round(dice.uniform(5, STORM_SECONDS), 1), float(dice.choice((0, 0, 0, 15, 60)))
    kind = dice.choice(("write", "write", "crash", "crash", "read", "watch", "silence", "cloud", "cloud", "describe"))
    write = dice.choice(_WRITES)
    if kind == "write":
        error, after = dice.choice(_WRITE_ERRORS)
        return Fault(at, error, "kube", (write,), after, lasts=lasts if error != "Invalid" else 0.0)
    if kind == "crash":
        port, verbs = dice.choice((("kube", (write,)), ("kube", _WRITES), ("cloud", ("create_fleet", "terminate"))))
        return Fault(at, "Crash", port, verbs, dice.random() < 0.5)
    if kind == "read":
        return Fault(at, dice.choice(("Throttled", "Unavailable")), "kube", ("list", "watch", "get"), lasts=lasts)
    if kind == "watch":
        return Fault(at, dice.choice(("Expired", "Disconnected")), "kube", ("read",), False, dice.choice(_PLURALS))
    if kind == "silence":
        plural = dice.choice(("nodeclaims", "nodes", "pods", "nodepools", "poddisruptionbudgets"))
        return Fault(at, "Silence", "kube", ("read",), False, plural, float(dice.choice((3, 20, 70, 200))))
    verb = dice.choice(("create_fleet", "terminate", "tag", "resolve")) if kind == "cloud" else "instances"
    error, after = dice.choice((("Throttled", False), ("Unavailable", False), ("Unavailable", True)))
    return Fault(at, error, "cloud", (verb,), after, lasts=lasts)


_WRITE_ERRORS = (
    ("Conflict", False),
    ("Throttled", False),
    ("Unavailable", False),
    ("Unavailable", True),
    ("Unavailable", True),
    ("Invalid", False),
)
