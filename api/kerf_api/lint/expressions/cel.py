"""The CEL rules of the CustomResourceDefinitions, run in Python.

The API server refuses objects by the rules in `x-kubernetes-validations`; here the same texts are run by a CEL engine
in this process, so that Git, the webhook and the cluster never disagree. Rules are compiled once per kind and laid out
as a tree that follows the schema; a manifest walks that tree. A rule whose evaluation fails counts as broken, as in the
API server.

Turning Python values into CEL values is what costs time. So a rule is handed only the fields that it reads, answers are
remembered (manifests repeat the same keys), and all rules of one place are first asked together, as one expression;
only when that does not hold are they asked one by one, to find what is to blame. Of lists of which a rule wants to know
the length, or a number, CEL first gets only the length: that is often enough, and the same for many entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from kerf_api import crds
from kerf_api.cel_library import cel
from kerf_api.lint.problem import Problem, Steps, at

_ID = re.compile(r"\s*\[(KERF-[A-Z0-9]+-\d+)\]\s*\Z")
_ALL = re.compile(r"\s*self\.all\(\s*(\w+)\s*,")
_QUOTED = re.compile(r"'(?:\\.|[^'\\])*'")
#: Values with a longer text are evaluated every time rather than remembered.
_SMALL: Final = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule, equal only to itself.

    `variable` is what its `source` speaks about: `self`, or one entry of it for rules about `each` entry. `reads` are
    the fields it needs, None when it needs the whole value; of those that are `veiled` it reads, if they are lists, the
    length or an entry as a number, and nothing else. `points_to` is the field to blame, if there is one.
    """

    id: str
    message: str
    points_to: Steps
    source: str
    variable: str
    each: bool
    transition: bool
    reads: tuple[str, ...] | None
    veiled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """The rules at one place of the schema and below it; `whole` is all of them that do not look at a change."""

    rules: tuple[Rule, ...]
    whole: Rule | None
    fields: Mapping[str, Node]
    entries: Node | None
    rest: Node | None


@cache
def tree(kind: str) -> Node:
    """The rules of a kind. Raises KeyError for a kind that is not ours, ValueError for a rule without an ID."""
    node = _node(crds.schema(kind))
    assert node is not None, "every kind has rules"
    return node


def rules(kind: str) -> tuple[Rule, ...]:
    """All rules of a kind, in the order of the schema."""
    return tuple(_flat(tree(kind)))


def prepare(kind: str) -> None:
    """Compile every rule of a kind. Raises ValueError for a rule that the engine cannot read."""
    for rule in rules(kind):
        _program(rule.source)
    for whole in _wholes(tree(kind)):
        _program(whole.source)


def check(
    kind: str, manifest: Mapping[str, Any], old: Mapping[str, Any] | None, faulty: frozenset[Steps]
) -> Iterator[Problem]:
    """Run the rules on a manifest whose defaults are filled in.

    `faulty` are the places that the structural check refused: rules that would read them are left out, because their
    answers would only confuse. Rules about a change run only where `old` has a value too.
    """
    yield from _walk(tree(kind), manifest, old, (), faulty)


def _node(schema: Mapping[str, Any]) -> Node | None:
    own = tuple(_rule(entry) for entry in schema.get("x-kubernetes-validations", ()))
    parts = ((name, _node(part)) for name, part in schema.get("properties", {}).items())
    fields = {name: part for name, part in parts if part is not None}
    entries = _node(schema["items"]) if "items" in schema else None
    additional = schema.get("additionalProperties")
    rest = _node(additional) if isinstance(additional, Mapping) else None
    return Node(own, _whole(schema, own), fields, entries, rest) if own or fields or entries or rest else None


def _whole(schema: Mapping[str, Any], own: tuple[Rule, ...]) -> Rule | None:
    """A place's own rules as one, but for those about a change; None where that would save nothing."""
    sources = [entry["rule"].strip() for entry in schema.get("x-kubernetes-validations", ())]
    standing = [(rule, source) for rule, source in zip(own, sources, strict=True) if not rule.transition]
    if len(standing) < 2 and not any(_ALL.match(source) for _, source in standing):
        return None
    variables = {rule.variable for rule, _ in standing}
    if all(rule.each for rule, _ in standing) and len(variables) == 1:
        (variable,) = variables
        body = " && ".join(f"({rule.source})" for rule, _ in standing)
        reads = _reads(body, variable)
        return Rule("", "", (), body, variable, True, False, reads, _veiled(body, variable, reads))
    source = " && ".join(f"({source})" for _, source in standing)
    return Rule("", "", (), source, "self", False, False, _reads(source, "self"))


def _rule(entry: Mapping[str, Any]) -> Rule:
    source, message = entry["rule"].strip(), entry["message"]
    found = _ID.search(message)
    if found is None:
        raise ValueError(f"the message of the rule {source!r} does not end with an ID")
    blamed = tuple(step for step in entry.get("fieldPath", "").split(".") if step)
    each = _ALL.match(source)
    body = source[each.end() : -1].strip() if each and source.endswith(")") else ""
    if each and body and _closed(body) and not re.search(r"\bself\b", _unquoted(body)):
        reads = _reads(body, each[1])
        veiled = _veiled(body, each[1], reads)
        return Rule(found[1], message[: found.start()], blamed, body, each[1], True, False, reads, veiled)
    transition = "oldSelf" in _unquoted(source)
    reads = _union(_reads(source, "self"), _reads(source, "oldSelf"))
    return Rule(found[1], message[: found.start()], blamed, source, "self", False, transition, reads)


def _unquoted(source: str) -> str:
    return _QUOTED.sub("''", source)


def _closed(body: str) -> bool:
    """Whether every bracket in the text is closed in it, so that the one after it belongs to what is before it."""
    depth = 0
    for letter in _unquoted(body):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _reads(source: str, variable: str) -> tuple[str, ...] | None:
    """The fields of a variable that an expression reads; None when it uses the variable as a whole."""
    plain = _unquoted(source)
    uses = re.findall(rf"(?<![\w.]){variable}\b(?:\.(\w+)(?!\w*\())?", plain)
    return None if "" in uses else tuple(sorted(set(uses)))


def _veiled(source: str, variable: str, reads: tuple[str, ...] | None) -> frozenset[str]:
    """The fields of which an expression reads nothing but `size(x.field)` and `int(x.field[0])`."""
    plain, found = _unquoted(source), set[str]()
    for name in reads or ():
        field = rf"{variable}\.{name}\b"
        counted = re.findall(rf"\bsize\({field}\)|\bint\({field}\[\d+\]\)", plain)
        if 0 < len(counted) == len(re.findall(rf"(?<![\w.]){field}", plain)):
            found.add(name)
    return frozenset(found)


def _union(first: tuple[str, ...] | None, second: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if first is None or second is None else tuple(sorted({*first, *second}))


def _flat(node: Node) -> Iterator[Rule]:
    yield from node.rules
    for child in (*node.fields.values(), node.entries, node.rest):
        if child is not None:
            yield from _flat(child)


def _wholes(node: Node) -> Iterator[Rule]:
    if node.whole is not None:
        yield node.whole
    for child in (*node.fields.values(), node.entries, node.rest):
        if child is not None:
            yield from _wholes(child)


def _walk(node: Node, value: Any, old: Any, steps: Steps, faulty: frozenset[Steps]) -> Iterator[Problem]:
    sound = node.whole is not None and not faulty and _all_hold(node.whole, value)
    for rule in node.rules:
        if rule.transition or not sound:
            yield from _apply(rule, value, old, steps, faulty)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, child in _children(node, value):
            yield from _walk(child, value[name], before.get(name), (*steps, name), faulty)
    elif isinstance(value, list) and node.entries is not None:
        # Lists are atomic in our rules' reach, so the old entry at the same index is not "the same" entry.
        for index, entry in enumerate(value):
            yield from _walk(node.entries, entry, None, (*steps, index), faulty)


def _children(node: Node, value: dict[str, Any]) -> Iterator[tuple[str, Node]]:
    """The names that an object has, each with its facts: the known fields first."""
    for name, child in node.fields.items():
        if name in value:
            yield name, child
    if node.rest is not None:
        for name in value:
            if name not in node.fields:
                yield name, node.rest


def _apply(rule: Rule, value: Any, old: Any, steps: Steps, faulty: frozenset[Steps]) -> Iterator[Problem]:
    if faulty and any(steps[: len(place)] == place for place in faulty):
        return
    if rule.each:
        yield from _apply_each(rule, value, steps, faulty)
    elif rule.transition and old is None:
        return
    elif not _unreadable(rule, steps, faulty) and not _holds(rule, value, old):
        yield from _blamed(rule, value, steps)


def _apply_each(rule: Rule, value: Any, steps: Steps, faulty: frozenset[Steps]) -> Iterator[Problem]:
    # A rule about a map speaks about its keys, one about a list about its entries.
    for step, entry in ((key, key) for key in value) if isinstance(value, dict) else enumerate(value):
        place = (*steps, step)
        if not _unreadable(rule, place, faulty) and not _holds(rule, entry, None):
            yield at(place, rule.id, "error", rule.message, value=entry)


def _unreadable(rule: Rule, steps: Steps, faulty: frozenset[Steps]) -> bool:
    """Whether the structural check refused something that the rule reads."""
    if not faulty:
        return False
    roots = [steps] if rule.reads is None else [(*steps, name) for name in rule.reads]
    return any(place[: len(root)] == root or root[: len(place)] == place for root in roots for place in faulty)


def _blamed(rule: Rule, value: Any, steps: Steps) -> Iterator[Problem]:
    """The rule's complaint at the entry that breaks it alone, or else at the field the rule names, or at the place."""
    if isinstance(value, (dict, list)) and rule.source.startswith("self.all("):
        single = _culprits(rule, value)
        if single:
            for step, entry in single:
                yield at((*steps, step), rule.id, "error", rule.message, value=entry)
            return
    target = value
    for step in rule.points_to:
        target = target.get(step) if isinstance(target, dict) else None
    yield at((*steps, *rule.points_to), rule.id, "error", rule.message, value=target)


def _culprits(rule: Rule, value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return [(key, entry) for key, entry in value.items() if not _holds(rule, {key: entry}, None)]
    return [(index, entry) for index, entry in enumerate(value) if not _holds(rule, [entry], None)]


def _all_hold(whole: Rule, value: Any) -> bool:
    """Whether all rules of a place hold. A rule about each entry of a map is about its keys."""
    if whole.each:
        return isinstance(value, (dict, list)) and all(_holds(whole, entry, None) for entry in value)
    return _holds(whole, value, None)


def _holds(rule: Rule, value: Any, old: Any) -> bool:
    if rule.transition and _unquoted(rule.source) == "self == oldSelf" and value == old:
        return True
    before, now = _fields(old, rule.reads), _fields(value, rule.reads)
    # What holds although nothing but the lengths is known (null is no number) holds whatever the lists say.
    if rule.veiled and isinstance(now, dict) and _answer(rule, _behind_veils(now, rule.veiled), before):
        return True
    return _answer(rule, now, before)


def _behind_veils(value: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The value with lists of nulls, as long as its own, in these fields."""
    return {
        name: [None] * len(part) if name in names and isinstance(part, list) else part for name, part in value.items()
    }


def _answer(rule: Rule, value: Any, old: Any) -> bool:
    key = _Key(value, old)
    return _remembered(rule, key) if len(key.text) <= _SMALL else _evaluate(rule, value, old)


def _fields(value: Any, names: tuple[str, ...] | None) -> Any:
    if names is None or not isinstance(value, dict):
        return value
    return {name: value[name] for name in names if name in value}


class _Key:
    """Values with their text: equal when the texts are, so that an answer can be remembered for unhashable values."""

    __slots__ = ("old", "text", "value")

    def __init__(self, value: Any, old: Any) -> None:
        self.value, self.old = value, old
        self.text = repr((value, old))

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.text == other.text


@lru_cache(maxsize=4096)
def _remembered(rule: Rule, key: _Key) -> bool:
    return _evaluate(rule, key.value, key.old)


@cache
def _program(source: str) -> Any:
    return cel.compile(source)


def _evaluate(rule: Rule, value: Any, old: Any) -> bool:
    """The rule's answer. Whatever the engine cannot evaluate is refused, as in the API server."""
    context = {rule.variable: value} | ({"oldSelf": old} if rule.transition else {})
    try:
        return _program(rule.source).execute(context) is True
    except Exception:
        return False
