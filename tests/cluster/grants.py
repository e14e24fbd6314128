"""The rules of Roles taken apart: one grant for each verb on each resource, with its name and namespace if it has them.

How a grant is compared with a call is Kubernetes' own way. Source: Kubernetes, "Using RBAC Authorization".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

ROLES: Final = {"RoleBinding": "Role", "ClusterRoleBinding": "ClusterRole"}
#: Of these a name is not known when the API server decides, so a rule with names never allows them.
NAMELESS: Final = frozenset({"create", "deletecollection"})


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One verb on one resource (`pods/eviction` with its subresource); empty `namespace` or `name`: any."""

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        what = f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"
        return what + (f" {self.name}" if self.name else "") + (f" in {self.namespace}" if self.namespace else "")

    def allows(self, call: Grant) -> bool:
        """`call` has the name and namespace of what is asked for, empty where all of them are."""
        nameless = call.verb in NAMELESS and "/" not in call.resource
        return (
            (self.group, self.resource, self.verb) == (call.group, call.resource, call.verb)
            and self.namespace in ("", call.namespace)
            and (not self.name or (self.name == call.name and not nameless))
        )


def of_rules(rules: Iterable[Mapping[str, Any]], namespace: str = "") -> Iterator[Grant]:
    """What rules of resources give. Raises ValueError for a wildcard: what that gives nobody can compare."""
    for rule in rules:
        parts = (rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames") or ("",))
        if any("*" in part for parted in parts for part in parted):
            raise ValueError(f"a wildcard: {dict(rule)}")
        yield from (Grant(*each, namespace) for each in product(*parts))


def of_account(objects: Iterable[Any], namespace: str, name: str) -> frozenset[Grant]:
    """What the bindings among these objects give a ServiceAccount."""
    known = list(objects)
    roles = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in known}
    found: set[Grant] = set()
    for binding in known:
        who = [(s["kind"], s.get("namespace", ""), s["name"]) for s in binding.get("subjects") or ()]
        if ("ServiceAccount", namespace, name) not in who or binding["kind"] not in ROLES:
            continue
        where, ref = binding["metadata"].get("namespace", ""), binding["roleRef"]
        role = roles[ref["kind"], where if ref["kind"] == "Role" else "", ref["name"]]
        found.update(of_rules(role["rules"], where))
    return frozenset(found)


def lost(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As rules, what these gave before and do not give after."""
    gone = {*of_rules(before)} - {*of_rules(after)}
    return [as_rule(one) for one in sorted(gone)]


def as_rule(one: Grant) -> dict[str, Any]:
    names = {"resourceNames": [one.name]} if one.name else {}
    return {"apiGroups": [one.group], "resources": [one.resource], "verbs": [one.verb], **names}
