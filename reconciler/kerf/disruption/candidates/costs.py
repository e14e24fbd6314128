"""What disrupting a node costs its pods, and what the node costs in money.

Both are integers, so that no order depends on rounding: a pod's eviction cost counts in 2^-27 of the cost of a default
pod, prices in millionths of a dollar per hour. Source: disruption reference §1.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import isfinite
from typing import Final

from kerf.model.aws.instance_type import InstanceType
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Pod
from kerf.scheduling.offerings.prices import offering_of, price_of
from kerf_api import labels

#: The eviction cost of a pod without priority and deletion cost.
ONE: Final = 2**27
_LIMIT: Final = 10 * ONE
#: A priority weighs four times as much as a deletion cost (2^27 against 2^25).
_PRIORITY_WEIGHT: Final = 4


def eviction_cost(pod: Pod) -> int:
    """Between -10 and 10 times ONE."""
    cost = ONE + _deletion_cost(pod) + _PRIORITY_WEIGHT * pod.spec.priority
    return max(-_LIMIT, min(_LIMIT, cost))


def _deletion_cost(pod: Pod) -> int:
    """The annotation as a whole number; what is no number counts as 0."""
    text = pod.metadata.annotations.get(labels.POD_DELETION_COST)
    if text is None:
        return 0
    try:
        value = float(text)
    except ValueError:
        return 0
    return round(max(-2.0 * _LIMIT, min(2.0 * _LIMIT, value))) if isfinite(value) else 0


def reschedule_cost(node_pods: Iterable[Pod]) -> int:
    """ONE for the node itself, and what its reschedulable pods add."""
    return ONE + sum(max(0, eviction_cost(pod)) for pod in node_pods if pods.reschedulable(pod))


def empty(node_pods: Iterable[Pod]) -> bool:
    """Whether nothing on the node would be missed: no reschedulable pod of positive cost."""
    return not any(pods.reschedulable(pod) and eviction_cost(pod) > 0 for pod in node_pods)


def price(instance_type: InstanceType | None, node_labels: Mapping[str, str]) -> int:
    """Millionths of a dollar per hour; 0 when it is not known."""
    return price_of(node_labels, () if instance_type is None else (instance_type,)) or 0


def node_price(types: Mapping[str, InstanceType], node_labels: Mapping[str, str]) -> int:
    """What a node with these labels costs, of its NodePool's types by name; as `price` has it."""
    return price(types.get(node_labels.get(labels.INSTANCE_TYPE, "")), node_labels)


def reserved_price(types: Mapping[str, InstanceType], node_labels: Mapping[str, str]) -> int:
    """The price on demand of a node on reserved capacity, which costs nothing more; 0 for others."""
    type_ = types.get(node_labels.get(labels.INSTANCE_TYPE, ""))
    offering = offering_of(node_labels, () if type_ is None else (type_,))
    return offering.on_demand if offering is not None and not offering.price else 0


def savings_ratio(price_per_hour: int, cost: int) -> Fraction:
    """What is saved for each unit of disruption."""
    return Fraction(price_per_hour, cost)
