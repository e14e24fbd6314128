"""What the controller's code can ask of the API server, read from its source.

All calls of the Kube port in the rooms that run as the controller are found, and what each method asks for is put
together: what is watched is a list of kinds (`reconciler/kerf/model/kinds.py`); what is written is found where actions
are made, by what their object is called. Names are nouns here: what a parameter or a field named `claim` is said to be
in a module, or else in its room, `claim` is all over it. A place that cannot be understood is an error, and so is
a method that nobody has described: then the code, or this file, has to say more.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from kerf.model import kinds
from kerf.model.kinds import Kind
from tests.cluster.grants import Grant
from tests.sources import ROOT

#: What people run, with rights of their own; and the port itself.
NOT_THE_CONTROLLER: Final = (
    "cli/",
    "views/",
    "runtime/preflight/",
    "runtime/process/releasing.py",
    "runtime/observe/looking.py",
    "runtime/observe/reported.py",
    "kube/",
    "sandbox/",
)
#: In which namespaces: in all, in the controller's own, or where the cluster's DNS is.
EVERYWHERE, OWN, DNS = "", "own", "kube-system"
_LEASES: Final = "coordination.k8s.io"
_HOOKS: Final = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
#: Reading and writing leases, by module and method.
LEASES: Final = {
    ("runtime/leadership/karpenter.py", "get_lease"): {Grant(_LEASES, "leases", "get", namespace=EVERYWHERE)},
    ("runtime/leadership/leader.py", "get_lease"): {Grant(_LEASES, "leases", "get", namespace=OWN)},
    ("runtime/leadership/leader.py", "put_lease"): {
        Grant(_LEASES, "leases", verb, namespace=OWN) for verb in ("create", "update")
    },
}
#: Requests by path, by module, function and HTTP method.
REQUESTS: Final[Mapping[tuple[str, str, str], set[Grant]]] = {
    ("runtime/secrets/stored_secret.py", "read", "GET"): {Grant("", "secrets", "get", namespace=OWN)},
    ("runtime/secrets/stored_secret.py", "write", "PUT"): {Grant("", "secrets", "update", namespace=OWN)},
    ("runtime/secrets/stored_secret.py", "write", "POST"): {Grant("", "secrets", "create", namespace=OWN)},
    ("runtime/secrets/certificates.py", "_announce", "GET"): {
        Grant("admissionregistration.k8s.io", h, "get") for h in _HOOKS
    },
    ("runtime/secrets/certificates.py", "_announce", "PATCH"): {
        Grant("admissionregistration.k8s.io", hooks, "patch") for hooks in _HOOKS
    },
    # /version as well, which is no resource.
    ("runtime/process/connecting.py", "_asked", "GET"): {Grant("", "services", "get", namespace=DNS)},
}
#: `changed` writes whatever differs, and in these nothing ever does.
NEVER: Final = {
    Grant("", "nodes/status", "patch"): "a node's status is its kubelet's",
    Grant("karpenter.sh", "nodeoverlays", "patch"): "an overlay is its owner's; of it only the conditions are ours",
}
_KINDS: Final = {kind.type.__name__: kind for kind in kinds.KNOWN}
#: Annotations of helpers that take an object of whatever kind: who calls them says of which.
_OF_ANY_KIND: Final = frozenset({"Any", "Value", "T"})

Function = ast.FunctionDef


class NotUnderstood(AssertionError):
    """A place in the source of which it cannot be said what it asks for."""


@dataclass(frozen=True, slots=True)
class Write:
    """A function that makes an action of its parameter at this place, and the subresources it may write."""

    action: str
    position: int
    subresources: frozenset[str]


@dataclass(slots=True)
class Source:
    """Modules by path below reconciler/, and what is known of their names."""

    modules: Mapping[str, ast.Module]
    aliases: dict[str, set[str]] = field(default_factory=dict)
    #: By module and by name.
    names: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    #: Helpers, by module and name.
    helpers: dict[tuple[str, str], Write] = field(default_factory=dict)
    #: Of the rooms that run as the controller: every call, and the module and function it is in.
    calls: list[tuple[str, Function, ast.Call]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path, tree in self.modules.items():
            if not path.startswith(NOT_THE_CONTROLLER):
                self.calls += [(path, function, call) for function in _functions(tree) for call in _calls(function)]
        for tree in self.modules.values():
            for told in tree.body:
                if isinstance(told, ast.Assign) and isinstance(told.value, ast.BinOp):
                    found = _words(told.value) & _KINDS.keys()
                    self.aliases |= {ast.unparse(target): found for target in told.targets if found}
        for path, tree in self.modules.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.arg) and node.annotation:
                    self.names[path, node.arg] |= self.kinds_in(node.annotation)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    self.names[path, node.target.id] |= self.kinds_in(node.annotation)

    def called(self, name: str, path: str) -> set[str]:
        """What is called so in a module; if nothing is, in its room; if nothing is, anywhere."""
        room = path.rpartition("/")[0]
        for near in (lambda p: p == path, lambda p: p.rpartition("/")[0] == room, lambda p: True):
            found = {
                kind for (where, noun), some in self.names.items() if noun == name and near(where) for kind in some
            }
            if found:
                return found
        return set()

    def kinds_in(self, annotation: ast.expr) -> set[str]:
        words = _words(annotation)
        if words & {"Sequence", "Iterable", "Iterator", "Mapping", "Callable", "tuple", "list", "dict", "frozenset"}:
            return set()
        return (words & _KINDS.keys()).union(*(self.aliases[word] for word in words & self.aliases.keys()))


@cache
def sources() -> Source:
    """The project's own."""
    room = ROOT / "reconciler" / "kerf"
    paths = (path for path in sorted(room.rglob("*.py")) if "sandbox" not in path.parts)
    return Source({str(p.relative_to(room)): ast.parse(p.read_text(encoding="utf-8")) for p in paths})


# --- writes -------------------------------------------------------------------------------------------------------
def written(source: Source) -> set[tuple[str, Kind, str]]:
    """The action, the kind and the subresource of everything that is patched, deleted or evicted."""
    found: set[tuple[str, Kind, str]] = set()
    while True:
        known = len(source.helpers)
        for path, function, call in source.calls:
            found |= _write(source, path, function, call)
        if len(source.helpers) == known:
            return found


def _write(source: Source, path: str, function: Function, call: ast.Call) -> set[tuple[str, Kind, str]]:
    """What one call writes, if it makes an action, or a helper of its function, whose callers then tell."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    subresources = _subresources(function, call)
    if name in ("PatchObject", "DeleteObject", "EvictPod"):
        action, (ref,) = name, [k.value for k in call.keywords if k.arg == "ref"]
        if not (isinstance(ref, ast.Call) and ast.unparse(ref.func) == "kinds.ref"):
            raise NotUnderstood(f"{path}:{call.lineno}: ref={ast.unparse(ref)}: say kinds.ref(object)")
        subject = ref.args[0]
    elif name and (helper := source.helpers.get(_defined(source, path, name))):
        action, subject = helper.action, call.args[helper.position]
        subresources = helper.subresources
    else:
        return set()
    parameters = [*function.args.posonlyargs, *function.args.args]
    for position, parameter in enumerate(parameters):
        if isinstance(subject, ast.Name) and subject.id == parameter.arg and parameter.annotation is not None:
            if _words(parameter.annotation) & _OF_ANY_KIND:
                _learn(source, (path, function.name), Write(action, position, subresources))
                return set()
            if own := source.kinds_in(parameter.annotation):
                return {(action, _KINDS[one], sub) for one in own for sub in subresources}
    known = source.called(ast.unparse(subject).rpartition(".")[2], path)
    if not known:
        raise NotUnderstood(
            f"{path}:{call.lineno}: of which kind is {ast.unparse(subject)}? Call it by its kind's name"
        )
    return {(action, _KINDS[one], sub) for one in known for sub in subresources}


def _learn(source: Source, key: tuple[str, str], write: Write) -> None:
    before = source.helpers.get(key)
    more = before.subresources if before is not None else frozenset()
    source.helpers[key] = Write(write.action, write.position, write.subresources | more)


def _subresources(function: Function, call: ast.Call) -> frozenset[str]:
    """What stands there; if that is a parameter of the function, both that are known."""
    value = next((k.value for k in call.keywords if k.arg == "subresource"), None)
    if value is None:
        return frozenset({""})
    return frozenset({str(value.value)}) if isinstance(value, ast.Constant) else frozenset({"", "status"})


def _defined(source: Source, path: str, name: str) -> tuple[str, str]:
    """Where a name that is called in a module comes from."""
    for node in source.modules[path].body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kerf."):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return node.module.removeprefix("kerf.").replace(".", "/") + ".py", alias.name
    return path, name


# --- everything ---------------------------------------------------------------------------------------------------
def asked(source: Source) -> set[Grant]:
    """Everything that the controller may ask for; `namespace` is EVERYWHERE, OWN or DNS, and names are left out."""
    actions = written(source)
    described: dict[str, Callable[[], set[Grant]]] = {
        "list": lambda: _each("list", {(kind, "") for kind in kinds.KNOWN}),
        "watch": lambda: _each("watch", {(kind, "") for kind in kinds.KNOWN}),
        "get": lambda: _each("get", {(kind, "") for _, kind, _ in actions} | {(kinds.NODE_CLAIM, "")}),
        "create": lambda: _each("create", {(kinds.NODE_CLAIM, "")}),
        "patch": lambda: _each("patch", {(kind, sub) for action, kind, sub in actions if action == "PatchObject"}),
        "delete": lambda: _each("delete", {(kind, "") for action, kind, _ in actions if action == "DeleteObject"}),
        "evict": lambda: _each("create", {(kind, "eviction") for a, kind, _ in actions if a == "EvictPod"}),
        "emit": lambda: {Grant("", "events", "create")},
    }
    found: set[Grant] = set()
    leases, requests = set(), set()
    for path, function, call in port_calls(source):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method == "request":
            key = (path, function.name, str(getattr(call.args[0], "value", "?")))
            _known(key, REQUESTS, call)
            requests.add(key)
        elif method.endswith("_lease"):
            _known((path, method), LEASES, call)
            leases.add((path, method))
        else:
            _known(method, described, call)
            found |= described[method]()
    assert (leases, requests) == ({*LEASES}, {*REQUESTS}), "described here, and never called"
    found = found.union(*LEASES.values(), *REQUESTS.values(), owners(source))
    assert found >= {*NEVER}, "said never to be written, and nothing could write it"
    return found - {*NEVER}


def port_calls(source: Source) -> Iterator[tuple[str, Function, ast.Call]]:
    """All calls of a method of what is called kube."""
    for path, function, call in source.calls:
        if isinstance(call.func, ast.Attribute) and _is_kube(call.func.value):
            yield path, function, call


def owners(source: Source) -> set[Grant]:
    """What OwnerReferencesPermissionEnforcement asks for where an owner's deletion is to be blocked."""
    found = set()
    for _, _, call in source.calls:
        if getattr(call.func, "id", "") == "OwnerReference":
            values = {keyword.arg: getattr(keyword.value, "value", None) for keyword in call.keywords}
            kind = _KINDS[str(values["kind"])]
            if values.get("block_owner_deletion"):
                found.add(Grant(kind.group, f"{kind.plural}/finalizers", "update"))
    return found


def _each(verb: str, of: set[tuple[Kind, str]]) -> set[Grant]:
    return {Grant(kind.group, f"{kind.plural}/{sub}" if sub else kind.plural, verb) for kind, sub in of}


def _known(key: object, table: Collection[object], call: ast.Call) -> None:
    if key not in table:
        raise NotUnderstood(f"{ast.unparse(call)} ({key}): say in {Path(__file__).name} what it asks for")


def _functions(tree: ast.Module) -> Iterator[Function]:
    """Of the module and of its classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from (each for each in node.body if isinstance(each, ast.FunctionDef))


def _calls(function: Function) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _words(expression: ast.expr) -> set[str]:
    """All names in it, of attributes too."""
    nodes = list(ast.walk(expression))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def _is_kube(receiver: ast.expr) -> bool:
    last = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
    return last in ("kube", "_kube")
