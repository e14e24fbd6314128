"""Why the bare API server accepts what rules numbered 100 and more refuse: the explanation of each such disagreement.

The definitions are the published ones, so that what is stored in a cluster stays valid; what they do not state, an API
server without the webhook cannot know. `make verdicts` fails on a disagreement that is not explained here, and on an
explanation that explains nothing any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WHY: Final[Mapping[str, tuple[str, ...]]] = {
    "the definition checks the form by a pattern; what the text comes to is known to those who read it": (
        "KERF-NP-120",
        "KERF-NP-121",
        "KERF-NP-122",
        "KERF-NP-123",
        "KERF-NC-101",
        "KERF-NC-102",
        "KERF-EC2-101",
        "KERF-EC2-102",
        "KERF-NO-106",
        "KERF-CB-101",
    ),
    "the definition does not say all that holds for the labels and taints of a Node": (
        "KERF-NP-101",
        "KERF-NP-103",
        "KERF-NP-104",
        "KERF-NP-106",
        "KERF-NP-108",
        "KERF-NO-101",
        "KERF-NO-103",
    ),
    "the definition does not list these names or values; the controllers do": (
        "KERF-NP-102",
        "KERF-NP-107",
        "KERF-NP-109",
        "KERF-NP-110",
        "KERF-NO-102",
        "KERF-NO-104",
        "KERF-NO-105",
    ),
    "the definition does not compare the two lists of taints": ("KERF-NP-105",),
    "the definition leaves spec.kubelet open; the kubelet and the controllers read it": (
        "KERF-EC2-104",
        "KERF-EC2-105",
    ),
    "the definition leaves spec.userData open; the controllers merge it, in the form of the AMI family": (
        "KERF-EC2-107",
        "KERF-EC2-108",
    ),
    "the annotation is ours, and the definition says nothing of annotations": (
        "KERF-META-108",
        "KERF-NP-125",
        "KERF-NP-126",
    ),
    "the bound is EC2's, and the definition does not state it": ("KERF-EC2-103", "KERF-EC2-113", "KERF-EC2-114"),
}
EXPLAINED: Final[Mapping[str, str]] = {rule: why for why, rules in _WHY.items() for rule in rules}
