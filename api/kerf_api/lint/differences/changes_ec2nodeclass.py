"""What a change of an EC2NodeClass means for the nodes of the NodePools that name it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kerf_api.lint.differences.drifting import drifting
from kerf_api.lint.problem import Found, Problem, at, path_text, some
from kerf_api.lint.reading.reading import is_kind, mapping, part
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.hashes import nodeclass_hash
from kerf_api.v1.meta import decode

Manifest = Mapping[str, Any]

#: Terms that are not in the hash: a node drifts when they no longer select what it was made with.
_SELECTING: Final = ("amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms")


def check(pairs: Sequence[tuple[int, Manifest, Manifest]], manifests: Sequence[Manifest]) -> Found:
    """What changes mean. `pairs`: a class's index among the manifests, how it was and how it is, defaults filled in;
    objects of other kinds are passed over."""
    for index, before, after in pairs:
        if is_kind(before, "EC2NodeClass") and is_kind(after, "EC2NodeClass") and before != after:
            users = pools_of(str(part(after, "metadata", "name")), manifests)
            for problem in _changed(
                before, after, f"of NodePool {some(users)}" if users else "made with the EC2NodeClass"
            ):
                yield index, problem


def pools_of(name: str, manifests: Sequence[Manifest]) -> list[str]:
    """The NodePools that name an EC2NodeClass, by name."""
    place = ("spec", "template", "spec", "nodeClassRef")
    found = {
        str(part(manifest, "metadata", "name"))
        for manifest in manifests
        if is_kind(manifest, "NodePool")
        and (part(manifest, *place, "kind"), part(manifest, *place, "name")) == ("EC2NodeClass", name)
    }
    return sorted(found)


def _changed(before: Manifest, after: Manifest, nodes: str) -> Iterator[Problem]:
    had, has = mapping(before, "spec"), mapping(after, "spec")
    changed = [field for field in {**has, **had} if had.get(field) != has.get(field)]
    places = drifting(_hash, before, after, [("spec", field) for field in changed])
    if places:
        names = " and ".join(path_text(place) for place in places)
        message = f"a change of {names} replaces all nodes {nodes}, as budgets for Drifted allow"
        hint = "make such changes together: each one replaces every node"
        yield at(places[0], "KERF-DIFF-323", "warning", message, hint)
        return
    for field in _SELECTING:
        if field in changed:
            message = f"nodes {nodes} whose {_WHAT[field]} these terms no longer select are replaced"
            hint = (
                "status of the EC2NodeClass lists the selected objects; compare it after the change in a test cluster"
            )
            yield at(("spec", field), "KERF-DIFF-324", "warning", message, hint)


_WHAT: Final = {
    "amiSelectorTerms": "image",
    "subnetSelectorTerms": "subnet",
    "securityGroupSelectorTerms": "security groups",
}


def _hash(manifest: Manifest) -> str:
    return nodeclass_hash(decode(EC2NodeClass, manifest), "")
