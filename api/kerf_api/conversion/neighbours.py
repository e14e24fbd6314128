"""What stands beside the old objects in a repository and speaks of them: it is reported, and not changed.

Patches of kustomize, differences that Argo CD ignores, health checks of Flux, rights: they name kinds and fields, and
what they mean by these fields only their author knows. And the ConfigMap in which older versions had settings that
classes have now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kerf_api import labels, old_names
from kerf_api.lint import Steps
from kerf_api.lint.problem import shown

from .work import REFERS, SETTING, Work

#: The old kinds in the plural of rights, with their new ones.
_RESOURCES: Final[Mapping[str, str]] = {
    "provisioners": "nodepools",
    "machines": "nodeclaims",
    "awsnodetemplates": "ec2nodeclasses",
}
_GROUPS: Final = (labels.GROUP, labels.AWS_GROUP)
#: Definitions name their own kind, and an old one goes when its objects have gone.
_NOT_ASKED: Final = frozenset({"CustomResourceDefinition", *old_names.KINDS})
_SETTINGS_NAME: Final = "karpenter-global-settings"
_SETTINGS: Final[Mapping[str, str]] = {
    "aws.defaultInstanceProfile": "pass it to kerf convert --instance-profile, or add it to each EC2NodeClass",
    "aws.tags": "add them to spec.tags of each EC2NodeClass",
    "aws.enableENILimitedPodDensity": "if it was false, add maxPods: 110 to spec.kubelet of each EC2NodeClass",
}


def tell(work: Work) -> None:
    """Report what an object of another kind says of old ones."""
    kind = str(work.old.get("kind"))
    if kind in _NOT_ASKED:
        return
    for steps, old in _kinds(work.old, ()):
        new = old_names.KINDS[old]
        work.tell(REFERS, steps, f"{old} is {new} now", f"write {new}, and check the fields that are named here", old)
    for steps, old in _rights(work.old):
        new = _RESOURCES[old]
        work.tell(REFERS, steps, f"{old} are {new} now", f"write {new}", old)
    metadata = work.old.get("metadata")
    if kind == "ConfigMap" and isinstance(metadata, dict) and metadata.get("name") == _SETTINGS_NAME:
        data = work.old.get("data")
        for key in data if isinstance(data, dict) else ():
            if key in _SETTINGS:
                work.tell(
                    SETTING,
                    ("data", key),
                    f"{shown(key)} is not read any more; set it in the EC2NodeClass",
                    _SETTINGS[key],
                )


def _kinds(value: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    """Every mention of an old kind below the object's own, unless it is some other group's kind of that name."""
    if isinstance(value, dict):
        old, group = value.get("kind"), value.get("group") or value.get("apiGroup") or value.get("apiVersion")
        # Machines without a group are as likely those of Cluster API.
        ours = old != "Machine" if group is None else str(group).partition("/")[0] in _GROUPS
        if steps and ours and isinstance(old, str) and old in old_names.KINDS:
            yield (*steps, "kind"), old
    for step, entry in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if isinstance(entry, dict | list):
            yield from _kinds(entry, (*steps, step))


def _rights(manifest: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    rules = manifest.get("rules")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        groups, resources = (rule.get("apiGroups"), rule.get("resources")) if isinstance(rule, dict) else ((), ())
        if not isinstance(groups, list) or not isinstance(resources, list) or not {*map(str, groups)} & {*_GROUPS, "*"}:
            continue
        for place, resource in enumerate(resources):
            if str(resource).partition("/")[0] in _RESOURCES:
                yield ("rules", index, "resources", place), str(resource).partition("/")[0]
