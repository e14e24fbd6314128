"""Why a pod has no place, in words, NodePool by NodePool. Equal pods share one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from api import labels
from api.requirements import Requirements
from reconciler.model.boundaries import MALFORMED as NONSENSE
from reconciler.model.boundaries import broken
from reconciler.scheduling.assign import Assignment
from reconciler.scheduling.classes import PodClass
from reconciler.scheduling.solution import PodRefusal
from reconciler.scheduling.template import Template
from reconciler.scheduling.types import Ints

NO_POOL = "NoNodePool"
NO_ROOM = "NoExistingCapacity"
INCOMPATIBLE = "Incompatible"
MALFORMED = "InvalidPod"
#: At most this many pools are told of, so that a refusal stays short.
_MOST_POOLS = 20


def not_readable(errors: Mapping[str, Exception]) -> dict[str, PodRefusal]:
    """Refusals of pods that make no sense. What nobody thought of is called a fault of ours."""
    found = {key: broken(error) for key, error in sorted(errors.items())}
    return {k: PodRefusal(MALFORMED if why.code == NONSENSE else why.code, why.text) for k, why in found.items()}


def no_place(
    assignment: Assignment, templates: Sequence[Template], problems: Mapping[str, PodRefusal], open_new: bool
) -> dict[str, PodRefusal]:
    """Refusals of the pods that are left."""
    answers: dict[int, PodRefusal] = {}
    for cls, _ in assignment.left.values():
        if cls.number not in answers:
            answers[cls.number] = _refusal(assignment, cls, templates, problems, open_new)
    return {key: answers[cls.number] for key, (cls, _) in sorted(assignment.left.items())}


def _refusal(
    assignment: Assignment,
    cls: PodClass,
    templates: Sequence[Template],
    problems: Mapping[str, PodRefusal],
    open_new: bool,
) -> PodRefusal:
    if not open_new:
        return PodRefusal(NO_ROOM, _no_existing(assignment, cls))
    if not cls.rungs[-1].demand.possible:
        return PodRefusal(MALFORMED, "its node selector and required node affinity contradict each other")
    pools = {name: problem.text for name, problem in sorted(problems.items())[:_MOST_POOLS]}
    if not templates:
        return PodRefusal(NO_POOL, "no NodePool is ready to make nodes", pools)
    for template in templates[:_MOST_POOLS]:
        pools[template.name] = why_not(assignment, cls, template)
    return PodRefusal(INCOMPATIBLE, f"{_no_existing(assignment, cls)} and no NodePool can make one", pools)


def _no_existing(assignment: Assignment, cls: PodClass) -> str:
    """That no node that is there will do; of those that suit and have the room, how many are full of volumes."""
    words, drivers = "no existing node has room for it", cls.attaching.drivers
    roomy = assignment.roomy(cls, len(cls.rungs) - 1, assignment.columns.vector(cls.requests))
    full = int((roomy & (assignment.slots.most(cls.attaching) <= 0)).sum())
    if not full or assignment.columns.unknown(cls.requests):
        return words
    return f"{words} ({full} would, but cannot attach its volumes within the limit of {', '.join(drivers)})"


def why_not(assignment: Assignment, cls: PodClass, template: Template) -> str:
    """The first rule by which the pool cannot make a node for the class's last rung."""
    rung = cls.rungs[-1]
    demand, need = rung.demand, assignment.columns.vector(cls.requests)
    untolerated = next((t for t in template.taints if not demand.tolerates((t,))), None)
    if untolerated is not None:
        return f"did not tolerate taint {untolerated}"
    unknown = assignment.columns.unknown(cls.requests)
    if unknown:
        return f"no instance type has {', '.join(unknown)}"
    wanted = demand.requirements & cls.volumes[0]
    key = template.requirements.incompatible(wanted, labels.WELL_KNOWN)
    if key is not None and key not in template.requirements:
        return f'incompatible requirements, label "{key}" does not have known values'
    if key is not None:
        return f"incompatible requirements, key {key}: {template.requirements[key]} and {wanted[key]}"
    served = template.serve(wanted)
    if served is None:
        return "no instance type met all requirements or has the required offering"
    return _why_no_type(assignment, cls, template, served, need)


def _why_no_type(assignment: Assignment, cls: PodClass, template: Template, served: Requirements, need: Ints) -> str:
    shape = template.shape(served)
    good = shape.holding(need)
    if not good.any():
        asked = ", ".join(f"{name} {text}" for name, text in cls.requests.texts().items())
        return f"no instance type has enough resources for {asked} beside its daemon sets"
    if template.remaining is not None and template.remaining.get("nodes", 1) <= 0:
        return "node limits have been exhausted for nodepool"
    limits = template.within_limits()
    if limits is not None and not (good & limits[shape.types]).any():
        return "all available instance types exceed limits for nodepool"
    free = template.free_of_ports(cls.ports)
    if free is not None and not (good & free[shape.types]).any():
        return "daemon sets hold its host ports on every instance type"
    missing = template.shortfall(shape.types[good])
    if missing and template.strict_min_values:
        return f"minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(missing))}])"
    bonds = cls.rungs[-1].bonds
    return bonds[0].describe() if bonds else "no node could be planned within limits"
