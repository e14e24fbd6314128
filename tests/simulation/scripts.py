"""A script is what a seed means: the manifests of a small cluster, what people and AWS do to it, and what fails when.

Deeds and faults are plain rows with a time each, independent of one another, so that a failing script can be made
shorter row by row. Seconds are virtual and count from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from kerf.model import kinds
from kerf.sandbox.weather import Weather
from tests.simulation.clusters import Cluster, Manifest, cluster

#: The storm lasts this long; what a user began ends with it.
STORM_SECONDS = 24 * 60
TYPES = ("c5.large", "c6i.large", "c6i.xlarge", "m5.large", "m6i.large", "m6i.xlarge", "m7g.large", "r6i.large")
_PLURALS = tuple(kind.plural for kind in kinds.WATCHED)
_MOVING = ("nodeclaims", "nodes", "pods", "nodepools", "poddisruptionbudgets")
_WRITES = ("create", "patch", "delete", "evict")
_AGENT = "corp.example.com/agent=missing:NoSchedule"
_DIFFERENCES: tuple[Mapping[str, Any], ...] = (
    {"lacking": {"cpu": "300m"}},
    {"lacking": {"memory": "20%"}},
    {"lacking": {"ephemeral-storage": "10Gi"}},
    {"lacking": {"pods": "80%"}},
    {"lacking_attachments": 25},
    {"missing_labels": ("topology.kubernetes.io/zone",)},
    {"late_taint": _AGENT},
    {"late_taint": _AGENT, "late_taint_seconds": 90.0},
)


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

    `error` is a port error's name, or: Crash (the controller dies there), Deposed (its lease ends there, for so long),
    Silence (a watch shows nothing), Reordered (a watch mixes up the order of objects).
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
    #: Whether nodes differ from their plan.
    differing: bool = False

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
    made = cluster(dice)
    return Script(
        seed=seed,
        weather=_weather(dice),
        manifests=_with_memory_limits(Random(f"memory limits {seed}"), made.manifests),
        deeds=_deeds(dice, made),
        faults=_with_dry_runs(Random(f"dry runs {seed}"), _faults(dice)),
        queue=seed % 3 == 0,
        expires=made.expires,
    )


def differing(what: Script) -> Script:
    """The same script in a world whose nodes differ from their plan in one way. The dice are their own."""
    dice = Random(f"differences {what.seed}")
    way = dice.choice(_DIFFERENCES)
    weather = replace(what.weather, differing_share=dice.choice((0.3, 1.0)), **way)
    return replace(what, weather=weather, differing=True)


def _with_memory_limits(dice: Random, manifests: tuple[Manifest, ...]) -> tuple[Manifest, ...]:
    """Some pools but the general one may have only so much memory. The dice are their own: the rest stays as it was."""
    made = []
    for manifest in manifests:
        spec = manifest.get("spec", {})
        if manifest["kind"] == "NodePool" and manifest["metadata"]["name"] != "general" and dice.random() < 0.5:
            limits = {**spec.get("limits", {}), "memory": dice.choice(("12Gi", "24Gi"))}
            manifest = {**manifest, "spec": {**spec, "limits": limits}}
        made.append(manifest)
    return tuple(made)


def _with_dry_runs(dice: Random, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """In every fourth world AWS does not answer some dry runs. The dice are their own here, too."""
    if dice.random() < 0.75:
        return faults
    error, after = dice.choice(_CLOUD_ERRORS)
    at, lasts = round(dice.uniform(0, STORM_SECONDS), 1), float(dice.choice((0, 15, 60)))
    one = Fault(at, error, "cloud", ("dry_run",), after, lasts=lasts)
    return tuple(sorted((*faults, one), key=lambda fault: (fault.at, str(fault))))


def _weather(dice: Random) -> Weather:
    return Weather(
        launch_seconds=dice.choice((3.0, 3.0, 3.0, 45.0)),
        fleet_seconds=dice.choice((0.0, 0.0, 1.5, 12.0)),
        describe_lag_seconds=dice.choice((0.0, 2.0, 10.0, 25.0)),
        boot_seconds=dice.choice((15.0, 40.0)),
        shutdown_seconds=dice.choice((5.0, 20.0, 60.0)),
        boot_failure_rate=dice.choice((0.0, 0.0, 0.1, 0.25)),
        ready_failure_rate=dice.choice((0.0, 0.0, 0.0, 0.15)),
        stock_out_rate=dice.choice((0.0, 0.0, 0.2)),
        spot_reclaim_per_hour=dice.choice((0.0, 0.0, 3.0)),
        scheduling_seconds=dice.choice((0.0, 0.0, 0.0, 4.0)),
        scattered=dice.random() < 0.3,
    )


# --- what is done to it -----------------------------------------------------------------------------------------
def _deeds(dice: Random, made: Cluster) -> tuple[Deed, ...]:
    deeds = [_deed(dice, made) for _ in range(dice.randint(6, 14))]
    return tuple(sorted(deeds, key=lambda deed: (deed.at, deed.verb)))


def _deed(dice: Random, made: Cluster) -> Deed:
    """One thing that a person or AWS does. `pick` chooses one of what is there then: a number in [0, 1)."""
    at, pick = round(dice.uniform(60, STORM_SECONDS - 60), 1), min(round(dice.random(), 3), 0.999)
    pool, app, lasts = dice.choice(made.pools), dice.choice(made.apps), dice.randint(30, 400)
    groups: tuple[tuple[tuple[Any, ...], ...], ...] = (
        (("scale", app, dice.randint(0, 6)),),
        _workload_deeds(dice, dice.choice(made.deployments), app, pick, lasts),
        _node_deeds(dice, pick, lasts),
        _node_deeds(dice, pick, lasts),
        _config_deeds(dice, pool, lasts),
        _outer_deeds(dice, pick, lasts),
    )
    verb, *arguments = dice.choice(dice.choice(groups))
    return Deed(at, verb, tuple(arguments))


def _workload_deeds(dice: Random, rolling: str, app: str, pick: float, lasts: int) -> tuple[tuple[Any, ...], ...]:
    return (
        ("delete_pod", pick),
        ("kill_pod", pick),
        ("pin_pod", pick, lasts),
        ("roll", rolling, f"r{dice.randint(1, 9)}"),
        ("block", app, lasts),
        ("overlap", app, lasts),
        ("run_job", f"job{dice.randint(1, 99)}", lasts),
        ("add_daemon", lasts),
    )


def _node_deeds(dice: Random, pick: float, lasts: int) -> tuple[tuple[Any, ...], ...]:
    return (
        ("delete_node", pick),
        ("abandon_node", pick),
        ("release_node", pick),
        ("delete_claim", pick),
        ("abandon_claim", pick),
        ("taint", pick, dice.choice(("NoSchedule", "NoExecute")), lasts),
        ("untaint_disrupted", pick),
        ("cordon", pick, lasts),
        ("relabel_node", pick, dice.choice(("karpenter.sh/initialized", "karpenter.sh/registered", "team"))),
        ("protect", pick, lasts),
        ("sicken", pick, lasts),
    )


def _config_deeds(dice: Random, pool: str, lasts: int) -> tuple[tuple[Any, ...], ...]:
    return (
        ("delete_pool", pool, lasts),
        ("relabel_pool", pool, f"v{dice.randint(1, 3)}"),
        ("edit_budget", pool, dice.choice(("0", "1", "100%"))),
        ("edit_limits", pool, dice.choice(("2", "6"))),
        ("change_image", dice.choice(("al2023@v20251201", "al2023@latest"))),
        ("break_class", lasts),
        ("delete_class", lasts),
    )


def _outer_deeds(dice: Random, pick: float, lasts: int) -> tuple[tuple[Any, ...], ...]:
    return (
        ("reclaim", pick),
        ("end_instance", pick),
        ("stock_out", dice.choice(("*", *TYPES)), dice.choice(("spot", "on-demand", "*")), lasts),
        ("compact",),
        ("second_leader", dice.choice((5, 20, 60))),
        ("not_leading", dice.choice((10, 40))),
    )


# --- what fails -------------------------------------------------------------------------------------------------
def _faults(dice: Random) -> tuple[Fault, ...]:
    made = [_fault(dice) for _ in range(dice.choice((0, 8, 16, 32)))]
    return tuple(sorted(made, key=lambda fault: (fault.at, str(fault))))


def _fault(dice: Random) -> Fault:
    kind = dice.choice((_write, _write, _end, _end, _read, _watch, _silence, _cloud, _cloud, _describe))
    return kind(dice, round(dice.uniform(5, STORM_SECONDS), 1), float(dice.choice((0, 0, 0, 15, 60))))


def _write(dice: Random, at: float, lasts: float) -> Fault:
    error, after = dice.choice(_WRITE_ERRORS)
    verb = dice.choice((*_WRITES, "emit"))
    return Fault(at, error, "kube", (verb,), after, lasts=lasts if error != "Invalid" else 0.0)


def _end(dice: Random, at: float, lasts: float) -> Fault:
    """The process dies, or its lease does."""
    port, verbs = dice.choice(
        (("kube", (dice.choice(_WRITES),)), ("kube", _WRITES), ("cloud", ("create_fleet", "terminate")))
    )
    if dice.random() < 0.2:
        return Fault(at, "Deposed", port, verbs, True, lasts=lasts or 10.0)
    return Fault(at, "Crash", port, verbs, dice.random() < 0.5)


def _read(dice: Random, at: float, lasts: float) -> Fault:
    error = dice.choice(("Throttled", "Unavailable", "Forbidden"))
    return Fault(at, error, "kube", ("list", "watch", "get"), subject=dice.choice(("", "pods", "nodes")), lasts=lasts)


def _watch(dice: Random, at: float, lasts: float) -> Fault:
    error = dice.choice(("Expired", "Disconnected", "Forbidden", "Reordered"))
    lasts = 60.0 if error == "Reordered" else 0.0
    return Fault(at, error, "kube", ("read",), subject=dice.choice(_PLURALS), lasts=lasts)


def _silence(dice: Random, at: float, lasts: float) -> Fault:
    lasts = float(dice.choice((3, 20, 70, 200)))
    return Fault(at, "Silence", "kube", ("read",), subject=dice.choice(_MOVING), lasts=lasts)


def _cloud(dice: Random, at: float, lasts: float) -> Fault:
    verb = dice.choice(("create_fleet", "create_fleet", "terminate", "tag", "resolve", "receive", "delete_message"))
    error, after = dice.choice((*_CLOUD_ERRORS, ("TemplateMissing" if verb == "create_fleet" else "Throttled", False)))
    return Fault(at, error, "cloud", (verb,), after, lasts=lasts)


def _describe(dice: Random, at: float, lasts: float) -> Fault:
    error, after = dice.choice(_CLOUD_ERRORS)
    return Fault(
        at, error, "cloud", (dice.choice(("instances", "instances", "region", "cluster")),), after, lasts=lasts
    )


_WRITE_ERRORS = (
    ("Conflict", False),
    ("Throttled", False),
    ("Unavailable", False),
    ("Unavailable", True),
    ("Unavailable", True),
    ("Invalid", False),
    ("Forbidden", False),
)
_CLOUD_ERRORS = (("Throttled", False), ("Unavailable", False), ("Unavailable", True), ("Forbidden", False))
