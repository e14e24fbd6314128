"""AWS of a scenario: selectors that find nothing in the simulated account select its subnets, groups and images.

The subnets, security groups and images of a user's account are not those of the simulation. A scenario is about
NodePools, so an EC2NodeClass that would be ready in the user's account must be ready here, too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kerf.model.aws.cloud import ClassFacts, ClusterFacts
from kerf.sandbox.aws.account import DISCOVERY_TAG
from kerf.simulating.shortages import Noting
from kerf_api.v1.ec2nodeclass import ALIAS_FAMILIES, EC2NodeClass, SelectorTerm

_EVERYTHING: Final = (SelectorTerm(tags={DISCOVERY_TAG: "*"}),)


class SimulatedCloud(Noting):
    """See the module."""

    def resolve(self, node_class: EC2NodeClass, cluster: ClusterFacts) -> ClassFacts:
        """The resources that an EC2NodeClass selects, or assumed ones."""
        found = super().resolve(node_class, cluster)
        assumed = {
            "SubnetsReady": {"subnet_selector_terms": _EVERYTHING},
            "SecurityGroupsReady": {"security_group_selector_terms": _EVERYTHING},
            "AMIsReady": {"ami_selector_terms": (SelectorTerm(alias=_alias(node_class)),)},
        }
        missing = {
            name: terms for row, fields in assumed.items() if row in found.problems for name, terms in fields.items()
        }
        if not missing:
            return found
        spec = msgspec.structs.replace(node_class.spec, **missing)
        return super().resolve(msgspec.structs.replace(node_class, spec=spec), cluster)


def _alias(node_class: EC2NodeClass) -> str:
    """The newest images of the family of an EC2NodeClass; AL2023 for its own images."""
    found = (alias for alias, family in ALIAS_FAMILIES.items() if family == node_class.family)
    return f"{next(found, 'al2023')}@latest"
