"""The lines of a file with pseudonyms in place of names, labels, taints, tags, resources and namespaces.

Pseudonyms have the order of what they stand for, so that a decision that sorts by name is the same one. Words that the
API itself gives a meaning (`spot`, `amd64`, zones, instance types) and numbers stay, also where one of them is the name
of an object. So do names of fields, and keys in the domains of Kubernetes, AWS and vendors of devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from kerf.model import kinds
from kerf.model.failures import Failure
from kerf.model.kubernetes.objects import PodCondition
from kerf.model.kubernetes.pods import TEMPLATE_HASHES
from kerf.snapshots import actions
from kerf.snapshots.fields import TAGS
from kerf.snapshots.hashes import rewritten
from kerf.snapshots.plain import PAIRS, typed
from kerf.snapshots.reading import HINTS, Unreadable
from kerf.snapshots.shapes import FREE, shape
from kerf_api import labels
from kerf_api.v1.hashes import NODECLASS_HASH_VERSION, NODEPOOL_HASH_VERSION

T = TypeVar("T")
#: The part of a text that can be a name.
_WORD: Final = re.compile(r"[A-Za-z0-9._-]+")
_ACCOUNT: Final = re.compile(r"(?<![0-9A-Za-z-])[0-9]{12}(?![0-9A-Za-z-])")
_NUMBER: Final = re.compile(r"-?[0-9.]+")
_TEMPLATE_HASHES: Final = frozenset(TEMPLATE_HASHES.values())
#: Labels whose values are words of the API and of EC2. Those of all others are a user's, whatever their domain.
_WORD_LABELS: Final = (
    labels.WELL_KNOWN - {labels.NODEPOOL}
    | labels.ALIASES.keys()
    | _TEMPLATE_HASHES
    | {"eks.amazonaws.com/compute-type"}
)
#: Fields of objects and facts whose values are names.
_NAME_FIELDS: Final = (
    "name",
    "nodeName",
    "nominatedNodeName",
    "pool",
    "claimName",
    "volumeName",
    "storageClassName",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "priorityClassName",
    "schedulerName",
    "role",
    "instanceProfile",
    "instance_profile",
    "profile",
)
#: Domains of keys and resources that the API, clouds and vendors of devices give a meaning.
_KNOWN_DOMAINS: Final = (
    *("kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com", "amazon.com", "kerf.sh", "aws.com"),
    *("nvidia.com", "amd.com", "intel.com", "habana.ai"),
)
#: Domains of the API in which users make the keys.
_FREE_DOMAINS: Final = frozenset({"node-role.kubernetes.io", "node-restriction.kubernetes.io"})
#: The tag of a cluster is this and its name.
_CLUSTER_TAG: Final = "kubernetes.io/cluster"
#: Maps with labels, and with quantities of resources.
_LABELS: Final = ("labels", "nodeSelector", "matchLabels", "tags")
_RESOURCES: Final = ("requests", "limits", "capacity", "allocatable", "allocatedResources", "overhead", "resources")
#: Maps whose keys are no fields.
_MAPS: Final = frozenset({*_LABELS, *_RESOURCES, "annotations"})
#: Fields whose values are words of the API, in objects and in facts.
_API_FIELDS: Final = """
    line kind apiVersion type status reason phase operator effect protocol whenUnsatisfiable restartPolicy action
    nodeAffinityPolicy nodeTaintsPolicy preemptionPolicy volumeBindingMode provisioner accessModes driver
    podManagementPolicy provisioningStrategy unhealthyPodEvictionPolicy httpTokens httpEndpoint code verb
    outcome state capacity_type category strategy architecture architectures usage_classes hypervisor manufacturer
    version software region format names consolidationPolicy reasons amiFamily alias ssmParameter criteria variant
    preference_policy min_values_policy subresource
"""
#: Words of the API that objects may have as names.
_API_WORDS: Final = """
    true false True False Unknown spot on-demand reserved amd64 arm64 linux windows default kube-system kube-public
    kube-node-lease nodes pods cpu memory ephemeral-storage disabled enabled required optional karpenter kerf
    default-scheduler metadata.name foregroundDeletion orphan https owned shared fargate
"""
#: Free texts of others, which decisions do not read, by the type that has them.
_TEXTS: Final[Mapping[Any, str]] = {Failure: "error", PodCondition: "message"}
_OF_THE_API: Final = frozenset(_API_FIELDS.split())
_WORDS: Final = frozenset(_API_WORDS.split()) | {NODEPOOL_HASH_VERSION, NODECLASS_HASH_VERSION} | TAGS


def renamed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of the same file with pseudonyms. Raises Unreadable when a line is no line of a snapshot."""
    found, words = list[dict[str, Any]](), _Words()
    for number, text in enumerate(lines, 1):
        found.append(_decoded(number, text))
        _line(number, words.collect, found[-1])
    table = words.pseudonyms()
    table |= _digests(found, table)
    for number, line in enumerate(found, 1):
        yield msgspec.json.encode(_line(number, _renamed, line, table)) + b"\n"


def _line(number: int, work: Callable[..., T], *arguments: Any) -> T:
    """What comes of work on a line. Raises Unreadable when the line is not of the form that a file has."""
    try:
        return work(*arguments)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"line {number}: it is no line of a snapshot") from error


def _digests(lines: Iterable[Mapping[str, Any]], table: Mapping[str, str]) -> dict[str, str]:
    """The hashes that cover names, and the same of the objects with pseudonyms."""
    found: dict[str, str] = {}
    bundle = next((line["value"]["ca_bundle"] for line in lines if line.get("name") == "cluster"), "")
    for line in lines:
        if line.get("kind") not in (kinds.NODE_POOL.name, kinds.NODE_CLASS.name):
            continue
        kind = kinds.BY_NAME[line["kind"]].type
        for item in line["items"]:
            with suppress(ValueError, TypeError, AttributeError):  # it cannot be read: there is no hash of it
                found |= rewritten(typed(item, kind), typed(_replaced(item, table, kind), kind), bundle)
    return found


def _decoded(number: int, line: bytes) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
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
        elif line.get("line") == "fact":
            if line["name"] in ("settings", "cluster"):
                self._of_cluster(line["value"])
            if line["name"] == "launch_failures":  # of NodeClaims that are deleted
                self.names |= {key.partition("/")[2] for key in line["value"] if key.startswith("nodeclaim/")}
            self._walk(line["value"])
        elif line.get("line") == "objects":
            self._walk(line["items"])

    def _of_cluster(self, value: Mapping[str, Any]) -> None:
        self.names |= {str(value.get(key, "")) for key in ("cluster_name", "name", "interruption_queue")}
        self.names |= {*_WORD.findall(str(value.get("endpoint", "")))}

    def _walk(self, data: Any) -> None:
        if isinstance(data, list):
            for one in data:
                self._walk(one)
        elif isinstance(data, dict):
            self._object(data)
            for value in data.values():
                self._walk(_inner(value) if isinstance(value, str) else value)

    def _object(self, data: Mapping[str, Any]) -> None:
        self.names |= {value for key in _NAME_FIELDS if isinstance(value := data.get(key), str)}
        if isinstance(meta := data.get("metadata"), dict):
            self._meta(meta)
        for field in _LABELS:
            self._labels(data.get(field))
        for field in _RESOURCES:
            for key in found if isinstance(found := data.get(field), dict) else ():
                self._key(key)
        self._rule(data)

    def _meta(self, meta: Mapping[str, Any]) -> None:
        self.names.add(str(meta.get("generateName", "")).rstrip("-"))
        own = meta.get("labels") or {}
        template = next((str(own[label]) for label in sorted(_TEMPLATE_HASHES) if label in own), "")
        for owner in meta.get("ownerReferences", ()):
            self._owner(str(owner.get("name", "")), template)
        self.namespaces.add(str(meta.get("namespace", "")))
        for text in meta.get("finalizers") or ():
            self._labels({text: ""})

    def _rule(self, data: Mapping[str, Any]) -> None:
        """A requirement, a taint, a toleration, a topology."""
        if isinstance(data.get("key"), str) and ("operator" in data or "effect" in data):
            value = data.get("value")
            for one in data.get("values") or ([value] if isinstance(value, str) else []) or [""]:
                self._labels({data["key"]: one})
        for key in (data.get("topologyKey"), *(data.get("matchLabelKeys") or ())):
            if isinstance(key, str):
                self._labels({key: ""})
        if isinstance(spaces := data.get("namespaces"), list):
            self.namespaces |= {str(one) for one in spaces}

    def _owner(self, name: str, template_hash: str) -> None:
        base = name.removesuffix(f"-{template_hash}") if template_hash else name
        self.names.add(base)
        if base != name:
            self._revisions[name] = base, template_hash

    def _labels(self, found: Any) -> None:
        for key, value in found.items() if isinstance(found, dict) else ():
            if key in _WORD_LABELS:
                self.kept.add(str(value))
                continue
            self.names.add(str(value))
            self._key(key, bare=True)

    def _key(self, key: str, *, bare: bool = False) -> None:
        """A key; without a domain it is a user's where `bare`, and the API's otherwise."""
        domain, _, name = key.rpartition("/")
        if domain in _FREE_DOMAINS or domain == _CLUSTER_TAG:
            self.names.add(name)
        elif not _known(key) and (domain or bare):
            self.names |= {*key.split("/")}

    def pseudonyms(self) -> dict[str, str]:
        """By word. A namespace is compared with the slash that follows it in keys."""
        words = {word for word in self.names | self.namespaces if word and not _NUMBER.fullmatch(word)} - self.kept
        ordered = sorted(words, key=lambda word: f"{word}/" if word in self.namespaces else word)
        width = len(str(len(ordered)))
        table = {word: f"n{number:0{width}}" for number, word in enumerate(ordered)}
        return table | {name: f"{table.get(of, of)}-{hash_}" for name, (of, hash_) in self._revisions.items()}


def _known(key: str) -> bool:
    """Whether a key has the meaning that the API, a cloud or a vendor gives it."""
    domain, slash, name = key.partition("/")
    if key in _TEMPLATE_HASHES:
        return True
    if not slash or "/" in name or domain in _FREE_DOMAINS:
        return False
    return any(domain == one or domain.endswith(f".{one}") for one in _KNOWN_DOMAINS)


# --- with pseudonyms --------------------------------------------------------------------------------------------
def _renamed(line: Mapping[str, Any], table: Mapping[str, str]) -> Mapping[str, Any]:
    match line.get("line"):
        case "header":
            return {**{key: value for key, value in line.items() if key != "plans"}, "names": "pseudonyms"}
        case "objects":
            kind = kinds.BY_NAME.get(line["kind"])
            return {**line, "items": [_replaced(one, table, kind.type if kind else Any) for one in line["items"]]}
        case "fact" if line["name"] == "under_way":
            return {**line, "value": [_replaced(one, table, actions.type_of(one)) for one in line["value"]]}
        case "fact":
            return {**line, "value": _replaced(line["value"], table, HINTS.get(line["name"], Any))}
        case "region":
            return {**line, "known": [_text(one, table) for one in line.get("known", ())]}
    return line


def _replaced(data: Any, table: Mapping[str, str], kind: Any, field: str = "") -> Any:
    """A value of this type; `field` is the name of the field that it is in."""
    if isinstance(data, dict):
        return _object(data, table, kind, field)
    if isinstance(data, list):
        inner = shape(kind).item
        return [_replaced(one, table, inner, field) for one in data]
    if not isinstance(data, str) or field in _OF_THE_API:
        return data
    inner = _inner(data)
    return _text(data, table) if inner is data else msgspec.json.encode(_replaced(inner, table, Any)).decode()


def _object(data: Mapping[str, Any], table: Mapping[str, str], kind: Any, field: str) -> dict[str, Any]:
    found = shape(kind)
    if data.keys() == {PAIRS}:
        pairs = [[_replaced(key, table, Any), _replaced(value, table, found.item)] for key, value in data[PAIRS]]
        return {PAIRS: pairs}
    if found.is_map or (found is FREE and field in _MAPS):
        return {_text(key, table): _replaced(value, table, found.item) for key, value in data.items()}
    texts = _TEXTS.get(kind, "")
    return {
        key: "" if key == texts else _replaced(value, table, (found.fields or {}).get(key, Any), key)
        for key, value in data.items()
    }


def _inner(text: str) -> Any:
    """The JSON object of an annotation; the same text when it is none."""
    if not text.startswith("{"):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _text(text: str, table: Mapping[str, str]) -> str:
    """With pseudonyms for the words of a text, or of a key such as `pod/namespace/name`."""
    if _known(text):
        return text
    if text in table:
        return table[text]
    return _ACCOUNT.sub("0" * 12, _WORD.sub(lambda found: _named(found[0], table), text))


def _named(word: str, table: Mapping[str, str]) -> str:
    """A word of a text, which marks may enclose: a name ends with neither a point nor a hyphen."""
    name = word.strip("._-")
    start = word.index(name)
    return word[:start] + table.get(name, name) + word[start + len(name) :]
