"""The messages of EC2NodeClass conditions for selectors that match nothing: Karpenter's text, then the selector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerf_api.v1.ec2nodeclass import EC2NodeClass, SelectorTerm

#: By condition: the reason, Karpenter's text, the field of the spec, and its name in Python.
_PARTS: Final = {
    "AMIsReady": (
        *("AMINotFound", "AMISelector did not match any AMIs"),
        *("amiSelectorTerms", "ami_selector_terms"),
    ),
    "SubnetsReady": (
        *("SubnetsNotFound", "SubnetSelector did not match any Subnets"),
        *("subnetSelectorTerms", "subnet_selector_terms"),
    ),
    "SecurityGroupsReady": (
        *("SecurityGroupsNotFound", "SecurityGroupSelector did not match any SecurityGroups"),
        *("securityGroupSelectorTerms", "security_group_selector_terms"),
    ),
}
#: A message names so many terms, and so many characters of each part of a term.
_MOST_TERMS, _MOST_CHARACTERS = 3, 80


def problem(condition: str, node_class: EC2NodeClass) -> tuple[str, str]:
    """Return reason and message of AMIsReady, SubnetsReady or SecurityGroupsReady while nothing matches."""
    reason, text, field, attribute = _PARTS[condition]
    terms: tuple[SelectorTerm, ...] = getattr(node_class.spec, attribute)
    named = " or ".join(", ".join(_parts(term)) for term in terms[:_MOST_TERMS])
    more = f" or {len(terms) - _MOST_TERMS} more" if len(terms) > _MOST_TERMS else ""
    return reason, f"{text}: {field}: {named}{more}" if named else text


def placement_group(node_class: EC2NodeClass) -> tuple[str, str]:
    """Return reason and message of PlacementGroupReady while no group matches."""
    selector = node_class.spec.placement_group_selector
    rows = (("id", selector.id), ("name", selector.name)) if selector is not None else ()
    named = ", ".join(f"{key} {_cut(value)}" for key, value in rows if value)
    text = "PlacementGroupSelector did not match a placement group that is available"
    return "PlacementGroupNotFound", f"{text}: placementGroupSelector: {named}"


def _parts(term: SelectorTerm) -> Iterator[str]:
    rows = (
        ("alias", term.alias),
        ("id", term.id),
        ("name", term.name),
        ("owner", term.owner),
        ("ssmParameter", term.ssm_parameter),
    )
    yield from (f"{key} {_cut(value)}" for key, value in rows if value)
    yield from (f"tag {_cut(f'{key}={value}')}" for key, value in sorted(term.tags.items()))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
