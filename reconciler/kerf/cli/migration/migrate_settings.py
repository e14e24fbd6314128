"""The Karpenter controller that runs now, and what becomes of its settings: each variable, flag and gate of it.

Kerf has Karpenter's settings by the same names, and refuses at its start what Karpenter passes over without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Final

from kerf.cli.migration.migrate_sources import Cluster, Manifest, names
from kerf.runtime.leadership.leases import USUAL
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding
from kerf.runtime.settings.options import Options

ROLE: Final = "eks.amazonaws.com/role-arn"
_OPTIONS: Final = {option.metadata["env"]: option for option in fields(Options)}
_FLAGS: Final = {option.metadata["flag"]: option for option in fields(Options)}
#: Variables without a meaning, there and here: every Deployment of Karpenter's chart has them.
_IDLE: Final = frozenset(
    {"KUBERNETES_MIN_VERSION", "KARPENTER_SERVICE", "DISABLE_WEBHOOK", "WEBHOOK_PORT", "WEBHOOK_METRICS_PORT"}
)
#: Gates that are closed by default in releases before this one, and open by default with Kerf.
_CLOSED_BEFORE: Final = {"ReservedCapacity": (1, 8)}
#: The first release whose binary opens a gate that FEATURE_GATES does not name.
_OPEN_SINCE: Final = {"ReservedCapacity": (1, 6)}
_GATES: Final = "FEATURE_GATES"
#: Those of AWS's SDK are read by Kerf's, too.
_SDK: Final = ("AWS_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_GO: Final = ("GOMEMLIMIT", "GOMAXPROCS", "GOGC", "GODEBUG")
#: What Karpenter takes where nothing is set, where Kerf takes something else.
_DEFAULTS: Final = {"AMI_REFRESH_INTERVAL": "1m", "SUBNET_REFRESH_INTERVAL": "1m"}
#: Where a variable may come from that is a setting; what the pod knows of itself is none.
_OBJECTS: Final = {"configMapKeyRef", "secretKeyRef"}
#: The default of webhook.trustedAccounts in Kerf's chart.
TRUSTED: Final = tuple(f"system:serviceaccount:{namespace}:karpenter" for namespace in ("kube-system", "karpenter"))
_VERSION: Final = re.compile(r":v?(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Controller:
    """A Deployment of Karpenter's. `elsewhere` are the variables, or sources of them, that only the cluster knows."""

    namespace: str
    name: str
    image: str
    replicas: int
    account: str
    environment: Mapping[str, str]
    elsewhere: Sequence[str]
    arguments: Sequence[str]

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name}"


def controllers(cluster: Cluster) -> list[Controller]:
    """Every Deployment with a container of Karpenter's image, by namespace and name."""
    found = (_controller(one) for one in cluster.manifests.get("Deployment", ()))
    return sorted((one for one in found if one is not None), key=lambda one: (one.namespace, one.name))


def _controller(deployment: Manifest) -> Controller | None:
    pod = deployment.get("spec", {}).get("template", {}).get("spec", {})
    for container in pod.get("containers") or ():
        if not _is_karpenter(container):
            continue
        rows = container.get("env") or ()
        references = [row["name"] for row in rows if _OBJECTS & (row.get("valueFrom") or {}).keys()]
        sources = [str(one.get("prefix") or next(iter(one))) for one in container.get("envFrom") or ()]
        return Controller(
            *names(deployment),
            image=container["image"],
            replicas=deployment["spec"].get("replicas", 1),
            account=pod.get("serviceAccountName") or "default",
            environment={row["name"]: str(row.get("value") or "") for row in rows if "value" in row},
            elsewhere=references + sources,
            arguments=[str(word) for word in container.get("args") or ()],
        )
    return None


def _is_karpenter(container: Mapping[str, Any]) -> bool:
    """By its image; wherever that was copied to, it is called controller, in a repository called karpenter."""
    return bool(re.search(r"karpenter/controller(-aws)?[:@]|/karpenter[:@]", container.get("image", "")))


def environment(found: Sequence[Controller]) -> dict[str, str]:
    """The settings of the first controller that Kerf can read, to look with."""
    own = found[0].environment if found else {}
    return {name: text for name, text in own.items() if text and name in _OPTIONS and not _unread(name, text)}


# --- what becomes of them ---------------------------------------------------------------------------------------
def look(cluster: Cluster) -> Iterator[Finding]:
    """Everything about the controllers."""
    found = controllers(cluster)
    if "Deployment" in cluster.withheld:
        yield Finding("Karpenter", DOUBTFUL, "no permission to list Deployments: its settings are unknown")
    elif not found:
        text = "no Deployment of Karpenter is there: its settings are not known"
        yield Finding("Karpenter", DOUBTFUL, text, "find its place, or give the Deployment as a file, too")
    for one in found:
        yield from _controller_findings(one, cluster)


def _controller_findings(one: Controller, cluster: Cluster) -> Iterator[Finding]:
    yield _release(one)
    for name, text in sorted(one.environment.items()):
        if finding := _variable(one, name, text):
            yield finding
    for name in one.elsewhere:
        yield Finding(f"{one} {name}", DOUBTFUL, "is from an object that was not read", "compare it by hand")
    yield from _flags(one)
    yield from _gates(one)
    for name, theirs in _DEFAULTS.items():
        if not one.environment.get(name):
            ours = _shown(getattr(Options(), _OPTIONS[name].name))
            yield Finding(f"{one} {name}", DOUBTFUL, f"{theirs} by default, {ours} with Kerf", f"set {name} to keep it")
    yield from _lease(one)
    yield from _trusted(one)
    yield from _account(one, cluster)


def _release(one: Controller) -> Finding:
    seen = f"{one.image.rpartition('@')[0] or one.image}, {one.replicas} replicas"
    release = _release_of(one)
    if release is not None and release < (1, 0):
        return Finding(str(one), WRONG, seen, "change to Karpenter 1.0 or newer first: Kerf reads objects of v1 only")
    return Finding(str(one), GOOD, seen)


def _variable(one: Controller, name: str, text: str) -> Finding | None:
    """None where the same means the same."""
    what = f"{one} {name}"
    if name in _IDLE or name.startswith(_SDK):
        return None
    if name in _OPTIONS:
        return _setting(what, _OPTIONS[name], text)
    if name in _GO:
        return Finding(what, DOUBTFUL, "is Go's: Kerf is not written in Go", "leave it out")
    return Finding(what, DOUBTFUL, f"Kerf has no such setting: {text!r} has no effect", "leave it out")


def _setting(what: str, option: Any, text: str) -> Finding | None:
    if not text:
        return None
    problem = _unread(option.metadata["env"], text)
    if problem:
        return Finding(what, WRONG, f"{text!r}: {problem}; Kerf does not start with it", "correct it, or leave it out")
    if "without effect" in option.metadata["about"] and option.metadata["read"](text) != option.default:
        return Finding(what, DOUBTFUL, f"{text!r} is accepted and has no effect", "nothing needs to be done")
    return None


def _unread(name: str, text: str) -> str:
    """Why Kerf cannot read the text of a variable of its own; empty when it can."""
    try:
        _OPTIONS[name].metadata["read"](text)
    except Exception as error:  # readers say in their own ways what is wrong
        return str(error)
    return ""


def _flags(one: Controller) -> Iterator[Finding]:
    for flag, text in _given_flags(one):
        option = _FLAGS.get(flag)
        if option is None:
            yield Finding(f"{one} {flag}", WRONG, "Kerf has no such flag, and does not start with it", "leave it out")
        elif text is not None and (finding := _setting(f"{one} {flag}", option, text)):
            yield finding


def _given_flags(one: Controller) -> Iterator[tuple[str, str | None]]:
    """Each flag, with two hyphens, and its value: after `=`, or the next word; None without one."""
    for word, following in zip_longest(one.arguments, one.arguments[1:], fillvalue="-"):
        name, equals, text = word.partition("=")
        if name.startswith("-"):
            yield "--" + name.lstrip("-"), text if equals else None if following.startswith("-") else following


def _gates(one: Controller) -> Iterator[Finding]:
    """Gates that are closed because that was the default of this release, and that Kerf opens by default.

    The chart of each release writes all of its gates into the Deployment, so a closed gate there need not be anybody's
    choice. Source: values of Karpenter's charts and defaults of its options, 1.0 to 1.14.
    """
    release, given = _release_of(one), _given_gates(one)
    for name, until in _CLOSED_BEFORE.items():
        since = _OPEN_SINCE[name]
        is_open = given.get(name.lower(), release is not None and release >= since)
        if is_open or (release is not None and release >= until):
            continue
        key = name[0].lower() + name[1:]
        seen = f"off in this Karpenter (its default before {until[0]}.{until[1]}), on by default in Kerf"
        fix = f"set settings.featureGates.{key}=false in Kerf's chart ({_GATES}={name}=false) to keep it off"
        yield Finding(f"{one} gate {name}", DOUBTFUL, seen, fix)


def _release_of(one: Controller) -> tuple[int, int] | None:
    """Major and minor; None for an image without a tag that says so."""
    found = _VERSION.search(one.image)
    return (int(found[1]), int(found[2])) if found is not None else None


def _given_gates(one: Controller) -> dict[str, bool]:
    """The gates that the Deployment names, in small letters: of the flag, else of the variable."""
    flags = (text for flag, text in _given_flags(one) if flag == "--feature-gates" and text is not None)
    text = next(flags, one.environment.get(_GATES, ""))
    rows = (row.partition("=") for row in text.split(","))
    return {
        name.strip().lower(): value.strip().lower() in ("true", "t", "1") for name, _, value in rows if name.strip()
    }


def _lease(one: Controller) -> Iterator[Finding]:
    """Kerf only watches while Karpenter's lease is held: where it can see it."""
    own = one.environment
    what = f"{one} lease"
    if own.get("DISABLE_LEADER_ELECTION", "").lower() in ("true", "1", "t"):
        fix = "scale it to 0 before Kerf is installed"
        yield Finding(what, WRONG, "runs without leader election: Kerf cannot detect that it is active", fix)
        return
    name = own.get("LEADER_ELECTION_NAME") or USUAL[0].name
    space = own.get("LEADER_ELECTION_NAMESPACE") or one.namespace
    if any((space, name) == (usual.namespace, usual.name) for usual in USUAL):
        yield Finding(what, GOOD, f"{space}/{name}: while Karpenter renews it Kerf only watches")
        return
    fix = f"install Kerf in {space}, or set settings.karpenterLeases to kube-system,karpenter,{space}/{name}"
    yield Finding(what, DOUBTFUL, f"{space}/{name} is not in a namespace that Kerf checks by default", fix)


def _trusted(one: Controller) -> Iterator[Finding]:
    """Yield a finding if Kerf's webhook would refuse the annotations that this Karpenter writes."""
    user = f"system:serviceaccount:{one.namespace}:{one.account}"
    if user not in TRUSTED:
        seen = f"Kerf's webhook does not trust {user}, and refuses the NodeClaims that it makes"
        yield Finding(f"{one} account", DOUBTFUL, seen, f"add {user} to webhook.trustedAccounts of Kerf's chart")


def _account(one: Controller, cluster: Cluster) -> Iterator[Finding]:
    """How it comes to its rights in AWS."""
    accounts = {names(found): found for found in cluster.manifests.get("ServiceAccount", ())}
    found = accounts.get((one.namespace, one.account))
    role = ((found or {}).get("metadata") or {}).get("annotations", {}).get(ROLE)
    what = f"ServiceAccount {one.namespace}/{one.account}"
    if role:
        fix = f"serviceAccount.annotations of Kerf's chart: {ROLE}: {role}; the role has to trust Kerf's ServiceAccount"
        yield Finding(what, DOUBTFUL, f"has the role {role}", fix)
    elif found is not None:
        fix = "with EKS Pod Identity: associate the same role with Kerf's ServiceAccount"
        yield Finding(what, DOUBTFUL, "the ServiceAccount has no annotation with an IAM role", fix)


def _shown(value: Any) -> str:
    """A duration in whole minutes, as the settings' defaults are."""
    return f"{int(value.total_seconds() // 60)}m"
