"""The objects as they are: those that Kerf's rules refuse, and what of them is read otherwise than by Karpenter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf.cli.migration.migrate_sources import PATHS, Cluster, Manifest, names
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, WRONG, Finding
from kerf_api import labels, lint
from kerf_api.foreign import is_foreign
from kerf_api.lint.reading.reading import part
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, NODEPOOL_HASH_VERSION

_JUDGED: Final = ("NodePool", "EC2NodeClass", "NodeOverlay", "CapacityBuffer")
_CLASS_NAME: Final = ("spec", "template", "spec", "nodeClassRef", "name")
#: By kind of the parent: its hash's version, where it is noted, and how Kerf hashes.
_VERSIONS: Final = {
    "NodePool": (labels.NODEPOOL_HASH_VERSION, NODEPOOL_HASH_VERSION),
    "EC2NodeClass": (labels.NODECLASS_HASH_VERSION, NODECLASS_HASH_VERSION),
}


def look(cluster: Cluster) -> Iterator[Finding]:
    """Everything about the objects that people write."""
    for kind in cluster.withheld:
        if kind in _JUDGED:
            yield Finding(f"{kind}s", DOUBTFUL, f"no permission to list them at {PATHS[kind]}")
    yield from _absent(cluster)
    for kind in _JUDGED:
        for manifest in cluster.manifests.get(kind, ()):
            yield from _foreign(manifest) if is_foreign(manifest) else _judged(manifest)
    for kind in _VERSIONS:
        for manifest in cluster.manifests.get(kind, ()):
            yield from () if is_foreign(manifest) else _hashed(kind, manifest)


def _absent(cluster: Cluster) -> Iterator[Finding]:
    """Objects without which the answer is about nothing: NodePools, and the EC2NodeClasses that they name."""
    if "NodePool" in cluster.withheld:
        return
    pools = cluster.manifests.get("NodePool", ())
    add = "" if cluster.live else "; add the output of kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes -o yaml"
    if not pools:
        yield Finding("NodePools", DOUBTFUL, "there is none: nothing is checked", f"check the source{add}")
    if "EC2NodeClass" in cluster.withheld:
        return
    known = {names(manifest)[1] for manifest in cluster.manifests.get("EC2NodeClass", ())}
    for manifest in pools:
        name = None if is_foreign(manifest) else part(manifest, *_CLASS_NAME)
        if isinstance(name, str) and name not in known:
            fix = f"create it, or correct {'.'.join(_CLASS_NAME)}{add}"
            yield Finding(f"NodePool {names(manifest)[1]}", DOUBTFUL, f"its EC2NodeClass {name} does not exist", fix)


def _foreign(manifest: Manifest) -> Iterator[Finding]:
    yield Finding(f"{manifest['kind']} {names(manifest)[1]}", GOOD, "is another controller's: Kerf leaves it alone")


def _judged(manifest: Manifest) -> Iterator[Finding]:
    """What `kerf validate` says of it, errors and warnings."""
    what = f"{manifest['kind']} {names(manifest)[1]}"
    problems = [one for one in lint.validate(manifest) if one.severity in ("error", "warning")]
    if not problems:
        yield Finding(what, GOOD, "passes all rules")
    for problem in problems:
        how = WRONG if problem.severity == "error" else DOUBTFUL
        yield Finding(what, how, str(problem), f"kerf explain {problem.rule}")


def _hashed(kind: str, manifest: Manifest) -> Iterator[Finding]:
    """What becomes of its hash: another version is replaced, on it and on its claims, and never compared."""
    annotation, ours = _VERSIONS[kind]
    theirs = (manifest["metadata"].get("annotations") or {}).get(annotation)
    what = f"{kind} {names(manifest)[1]}"
    if theirs is None:
        yield Finding(what, GOOD, f"has no hash yet: it gets one of version {ours}")
    elif theirs != ours:
        seen = f"is hashed as {theirs}: Kerf writes {ours} on it and its NodeClaims, and no node drifts"
        yield Finding(what, GOOD, seen)
