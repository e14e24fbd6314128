"""The page docs/reference/snapshots.md: the format of the files of `kerf snapshot`, and every field in them."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, Final

import msgspec

from kerf.model import kinds
from kerf.model.aws.cloud import Region
from kerf.model.cluster import FACTS
from kerf.model.snapshot import Snapshot
from kerf.snapshots.fields import ANNOTATIONS, MESSAGES_OF, TAG_PREFIXES, TAGS
from kerf.snapshots.lines import FORMAT, VERSION

_HEAD: Final = f"""\
# Files of snapshots

Rendered by `make manifests` from `reconciler/kerf/cli/pages/snapshots.py` and the types that Kerf reads.

`kerf snapshot -o FILE` saves what decisions depend on. `kerf why ... --snapshot FILE` reads it, without the cluster and
without AWS.

## Who may read a file

A file has no Secrets, ConfigMaps, environment variables, commands or arguments. It has what someone with `kubectl get`
on pods, nodes and workloads sees of their sizes and constraints, and what someone with `ec2:Describe*` sees of the
cluster's instances and subnets:

- names, namespaces, labels, taints, requests, affinity and tolerations of pods;
- prices, instance types, subnet and security group IDs, tags of EC2NodeClasses with their values, the
  cluster's endpoint and the account's number in its ARN;
- messages of AWS and of the API server about actions that fail.

Give it to those who may see these. The file has mode 0600.

`--hash-names` replaces names, namespaces, labels, taints, tags, finalizers, roles, domains of custom resources, the
cluster's endpoint and the account's number. Their order stays, so the plan is the same up to names. It leaves out the
messages of conditions of pods and of failing actions. These stay:

- prices, sizes, counts and times;
- UIDs, and the IDs of AWS (instances, subnets, images, keys of KMS);
- labels of instance types and zones, keys in the domains of Kubernetes, AWS and vendors of devices;
- names of drivers, expressions (CEL) of devices, the cluster's CA certificate, and messages of AWS.

In place of user data a file has `# digest:` and an HMAC-SHA256 of it. The key is random and is not kept, or that of the
variable `KERF_DIGEST_KEY`: who has key and text can compare them. The first line has a fingerprint of the key, 16
digits of its HMAC-SHA256 of a fixed text: under another key `kerf plan` reports that it cannot compare user data.
A hash that covers user data or annotations that are
left out (`karpenter.k8s.aws/ec2nodeclass-hash`, `karpenter.sh/nodepool-hash`) is written as the hash of what is left,
so that the same nodes drift.
The same applies to the digests of plans (`kerf.sh/approved-plan`, `kerf.sh/seen-plan`); the first line of the file maps
them to those of the cluster, for `kerf plan`.

## Lines

A file is JSON Lines, compressed with gzip (`zcat FILE | jq`). Uncompressed files are read too.

| `line` | content |
|---|---|
| `header` | the first: `format` (`{FORMAT}`), `version` ({VERSION}), `at`, `key`, `names` (`plain`, `pseudonyms`) |
| `objects` | some `items` of a `kind`, as the API server has them, with the fields below |
| `fact` | `name` and `value` of one of the facts below; a fact that has nothing to say has no line |
| `region` | instance types, zones and prices of the region, and the EC2NodeClasses whose types are known |
| `end` | the last line, with the number of lines before it |

A map whose keys are not text is `{{"$pairs": [[key, value], ...]}}`. Every version of Kerf reads the files of earlier
ones. Kinds and facts of a later version are ignored and named. A file with a later `version` is refused.

## Annotations

"""
_TAGS: Final = """
Others are left out, on pod templates too. The message of a pod's condition is kept for {messages} only. Of the tags of
instances {tags} are kept, and those that begin with {prefixes}.

## Fields of objects

"""
_FACTS: Final = """
## Fields of facts

"""


def snapshots_page() -> str:
    """The page, in Markdown."""
    listed = "".join(f"- `{one}`\n" for one in sorted(ANNOTATIONS))
    told = _TAGS.format(messages=_code(MESSAGES_OF), tags=_code(TAGS), prefixes=_code(TAG_PREFIXES))
    seen: set[type[Any]] = set()
    objects = "".join(_rows(kind.type, seen) for kind in sorted(kinds.KNOWN, key=lambda kind: kind.name))
    hints = typing.get_type_hints(Snapshot)
    facts = "".join(f"| `{name}` | {_names(hints[name])} |\n" for name in sorted(FACTS) if name not in _OTHER)
    of_facts = "".join(_rows(kind, seen) for name in FACTS if name not in _OTHER for kind in _types(hints[name]))
    of_facts += _rows(Region, seen)
    head = "| fact | types |\n|---|---|\n"
    rows = "| type | fields |\n|---|---|\n"
    return f"{_HEAD}{listed}{told}{rows}{objects}{_FACTS}{head}{facts}\n{rows}{of_facts}"


#: In the header, or computed from the others.
_OTHER: Final = ("now", "catalogues")


def _code(texts: typing.Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in sorted(texts))


def _rows(kind: type[Any], seen: set[type[Any]]) -> str:
    """A row for a type and for each that its fields have."""
    if kind in seen:
        return ""
    seen.add(kind)
    hints = typing.get_type_hints(kind)
    own = f"| {kind.__name__} | {', '.join(f'`{name}`' for name in _field_names(kind, hints))} |\n"
    return own + "".join(_rows(inner, seen) for hint in hints.values() for inner in _types(hint))


def _field_names(kind: type[Any], hints: Mapping[str, Any]) -> list[str]:
    if issubclass(kind, msgspec.Struct):
        return [one.encode_name for one in msgspec.structs.fields(kind)]
    return list(hints)


def _types(hint: Any) -> Iterator[type[Any]]:
    """The types with fields in a hint, such as `Mapping[str, tuple[Taint, ...]]`."""
    if typing.get_origin(hint) is not None or isinstance(hint, types.UnionType):
        for one in typing.get_args(hint):
            yield from _types(one)
    elif isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, msgspec.Struct)):
        yield hint


def _names(hint: Any) -> str:
    return ", ".join(dict.fromkeys(one.__name__ for one in _types(hint))) or "times, numbers and texts"
