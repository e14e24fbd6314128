"""The CustomResourceDefinitions, as data.

Each YAML file here is one kind: its fields, defaults, bounds and CEL rules. They are the single source of structural
truth. The API server gets them through the chart; the webhook, `kerf validate` and the documentation read them through
`load`. Nothing else in the code repeats a pattern, an enum or a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import yaml

#: The parser in C, where it was built: a Git hook reads these files at every commit and should not be waited for.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NodePool": "nodepools.yaml",
        "NodeClaim": "nodeclaims.yaml",
        "EC2NodeClass": "ec2nodeclasses.yaml",
        "NodeOverlay": "nodeoverlays.yaml",
        "CapacityBuffer": "capacitybuffers.yaml",
    }
)


def kinds() -> tuple[str, ...]:
    """The kinds that have a definition here, in the order in which a reader meets them."""
    return tuple(FILES)


def text(kind: str) -> str:
    """The YAML text of a kind's definition. Raises KeyError for a kind that is not ours."""
    return files(__name__).joinpath(FILES[kind]).read_text(encoding="utf-8")


@cache
def load(kind: str) -> Mapping[str, Any]:
    """The CustomResourceDefinition of `kind` as plain dicts and lists, read once; callers must not change it.

    Raises KeyError for a kind that is not ours.
    """
    definition: dict[str, Any] = yaml.load(text(kind), _LOADER)
    return MappingProxyType(definition)


def schema(kind: str) -> Mapping[str, Any]:
    """The openAPIV3Schema of the kind's only version."""
    version: Mapping[str, Any] = load(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return version


def api_version(kind: str) -> str:
    """The apiVersion that manifests of the kind carry, `karpenter.sh/v1` for example."""
    spec = load(kind)["spec"]
    return f"{spec['group']}/{spec['versions'][0]['name']}"


def is_namespaced(kind: str) -> bool:
    """Whether objects of the kind live in namespaces."""
    return bool(load(kind)["spec"]["scope"] == "Namespaced")


def file_name(kind: str) -> str:
    """The name of the rendered file: group and plural, so that files of all groups can lie side by side."""
    spec = load(kind)["spec"]
    return f"{spec['group']}_{spec['names']['plural']}.yaml"
