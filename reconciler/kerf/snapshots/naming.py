"""The lines of a file with pseudonyms in place of names, labels, taints and namespaces.

Pseudonyms have the order of what they stand for, so that a decision that sorts by name is the same one. Words that the
API itself gives a meaning (`spot`, `amd64`, zones, instance types) and numbers stay, also where one of them is the name
of an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from kerf.model import kinds
from kerf.snapshots.hashes import rewritten
from kerf.snapshots.plain import typed
from kerf.snapshots.reading import Unreadable
from kerf_api import labels
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, NODEPOOL_HASH_VERSION

#: The part of a text that can be a name.
_WORD: Final = re.compile(r"[A-Za-z0-9._-]+")
_ACCOUNT: Final = re.compile(r"(?<![0-9A-Za-z-])[0-9]{12}(?![0-9A-Za-z-])")
_NUMBER: Final = re.compile(r"-?[0-9.]+")
#: Labels whose values are names of objects.
_NAMES: Final = frozenset({labels.HOSTNAME, labels.NODEPOOL, labels.NODECLASS})
_TEMPLATE_HASH: Final = "pod-template-hash"
#: Fields of objects whose values are names.
_NAME_FIELDS: Final = (
    "name",
    "nodeName",
    "nominatedNodeName",
    "claimName",
    "volumeName",
    "storageClassName",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "priorityClassName",
)
#: Domains of keys that the API, clouds and their drivers give a meaning.
_KNOWN_DOMAINS: Final = ("kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com", "kerf.sh", "aws.com")
#: Maps whose keys are no fields.
_MAPS: Final = frozenset({"labels", "nodeSelector", "matchLabels", "annotations", "tags"})
#: Fields whose values are words of the API, in objects and in facts.
_API_FIELDS: Final = """
    line kind apiVersion type status reason phase operator effect protocol whenUnsatisfiable restartPolicy action
    nodeAffinityPolicy nodeTaintsPolicy preemptionPolicy schedulerName volumeBindingMode provisioner accessModes driver
    podManagementPolicy provisioningStrategy unhealthyPodEvictionPolicy finalizers httpTokens httpEndpoint code verb
    outcome state capacity_type category strategy architecture architectures usage_classes hypervisor manufacturer
    version software region format names consolidationPolicy reasons amiFamily alias ssmParameter criteria variant
    preference_policy min_values_policy subresource
"""
#: Words of the API that objects may have as names.
_API_WORDS: Final = """
    true false True False Unknown spot on-demand reserved amd64 arm64 linux windows default kube-system kube-public
    kube-node-lease nodes pods cpu memory ephemeral-storage disabled enabled required optional karpenter kerf
"""
_OF_THE_API: Final = frozenset(_API_FIELDS.split())
_WORDS: Final = frozenset(_API_WORDS.split()) | {NODEPOOL_HASH_VERSION, NODECLASS_HASH_VERSION}


def renamed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of the same file with pseudonyms. Raises Unreadable when a line is no JSON object."""
    found = [_decoded(number, line) for number, line in enumerate(lines, 1)]
    words = _Words()
    for line in found:
        words.collect(line)
    table = words.pseudonyms()
    table |= _digests(found, table)
    for line in found:
        header = {**line, "names": "pseudonyms"} if line.get("line") == "header" else line
        yield msgspec.json.encode(_replaced(header, table)) + b"\n"


def _digests(lines: Iterable[Mapping[str, Any]], table: Mapping[str, str]) -> dict[str, str]:
    """The hashes that cover names, and the same of the objects with pseudonyms."""
    found: dict[str, str] = {}
    bundle = next((line["value"]["ca_bundle"] for line in lines if line.get("name") == "cluster"), "")
    for line in lines:
        if line.get("kind") not in (kinds.NODE_POOL.name, kinds.NODE_CLASS.name):
            continue
        kind = kinds.BY_NAME[line["kind"]].type
        for item in line["items"]:
            with suppress(ValueError):  # it cannot be read: there is no hash of it
                found |= rewritten(typed(item, kind), typed(_replaced(item, table), kind), bundle)
    return found


def _decoded(number: int, line: bytes) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise Unreadable(f"line {number}: {error}") from error
    if not isinstance(data, dict):
        raise Unreadable(f"line {number}: it is no line of a snapshot")
    return data


class _Words:
    """What becomes a pseudonym: `names` that users have given, without the words of the API (`kept`)."""

    def __init__(self) -> None:
        self.names, self.namespaces, self.kept = set[str](), set[str](), set[str](_WORDS)
        #: ReplicaSets of Deployments: the name of the Deployment, and the hash that follows it.
        self._revisions: dict[str, tuple[str, str]] = {}

    def collect(self, line: Mapping[str, Any]) -> None:
        """Take in the words of a line."""
        if line.get("line") == "region":
            region = line["region"]
            self.kept |= {region.get("name", ""), *region.get("zones", ()), *region.get("types", ())}
        elif line.get("line") == "fact" and line["name"] in ("settings", "cluster"):
            self.names |= {str(line["value"].get(key, "")) for key in ("cluster_name", "name")}
        elif line.get("line") == "objects":
            self._walk(line["items"])

    def _walk(self, data: Any) -> None:
        if isinstance(data, list):
            for one in data:
                self._walk(one)
        elif isinstance(data, dict):
            self._object(data)
            for value in data.values():
                self._walk(value)

    def _object(self, data: Mapping[str, Any]) -> None:
        meta = data.get("metadata")
        self.names |= {value for key in _NAME_FIELDS if isinstance(value := data.get(key), str)}
        if isinstance(meta, dict):
            self.names.add(str(meta.get("generateName", "")).rstrip("-"))
            for owner in meta.get("ownerReferences", ()):
                self._owner(str(owner.get("name", "")), str((meta.get("labels") or {}).get(_TEMPLATE_HASH, "")))
            self.namespaces.add(str(meta.get("namespace", "")))
            self._labels(meta.get("labels"))
        for field in ("nodeSelector", "matchLabels"):
            self._labels(data.get(field))
        if isinstance(data.get("key"), str) and ("operator" in data or "effect" in data):
            value = data.get("value")
            for one in data.get("values") or ([value] if isinstance(value, str) else []) or [""]:
                self._labels({data["key"]: one})
        if isinstance(data.get("topologyKey"), str):
            self._labels({data["topologyKey"]: ""})

    def _owner(self, name: str, template_hash: str) -> None:
        base = name.removesuffix(f"-{template_hash}") if template_hash else name
        self.names.add(base)
        if base != name:
            self._revisions[name] = base, template_hash

    def _labels(self, found: Any) -> None:
        for key, value in found.items() if isinstance(found, dict) else ():
            if _known(key):
                (self.names if key in _NAMES else self.kept).add(str(value))
            else:
                self.names |= {*key.split("/"), str(value)}

    def pseudonyms(self) -> dict[str, str]:
        """By word. A namespace is compared with the slash that follows it in keys."""
        words = {word for word in self.names | self.namespaces if word and not _NUMBER.fullmatch(word)} - self.kept
        ordered = sorted(words, key=lambda word: f"{word}/" if word in self.namespaces else word)
        width = len(str(len(ordered)))
        table = {word: f"n{number:0{width}}" for number, word in enumerate(ordered)}
        return table | {name: f"{table.get(of, of)}-{hash_}" for name, (of, hash_) in self._revisions.items()}


def _known(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return key == _TEMPLATE_HASH or any(domain == one or domain.endswith(f".{one}") for one in _KNOWN_DOMAINS)


def _replaced(data: Any, table: Mapping[str, str], field: str = "") -> Any:
    if isinstance(data, dict):
        free = field in _MAPS
        return {_text(key, table): _replaced(value, table, "" if free else key) for key, value in data.items()}
    if isinstance(data, list):
        return [_replaced(one, table, field) for one in data]
    if isinstance(data, str) and field not in _OF_THE_API:
        return _text(data, table)
    return data


def _text(text: str, table: Mapping[str, str]) -> str:
    """With pseudonyms for the words of a text, or of a key such as `pod/namespace/name`."""
    if text in table:
        return table[text]
    return _ACCOUNT.sub("0" * 12, _WORD.sub(lambda found: _named(found[0], table), text))


def _named(word: str, table: Mapping[str, str]) -> str:
    """A word of a text, which marks may enclose: a name ends with neither a point nor a hyphen."""
    name = word.strip("._-")
    start = word.index(name)
    return word[:start] + table.get(name, name) + word[start + len(name) :]
