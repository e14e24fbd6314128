"""A NodePool's own state: its hash for drift, whether it is valid and its class usable, and what it has.

Validation is done when the pool changes. The hash protocol: when the way of hashing changes, the pool's claims are
re-hashed first, so that no node drifts because of it, and when that has come off the pool follows. Claims that drifted
already keep their old hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kerf.lifecycle import shifted_zones
from kerf.lifecycle.nodeclaim import mismatches
from kerf.lifecycle.nodeclaim.mismatches import Found
from kerf.lifecycle.nodeclaim.pool_limits import Part
from kerf.lifecycle.nodepool import pool_failures, registration_health
from kerf.lifecycle.nodepool.registration_health import HEALTHY
from kerf.lifecycle.view import View
from kerf.model import backoff
from kerf.model.annotations import text_of
from kerf.model.backoff import PoolFailures, Registrations
from kerf.model.memory import Asked, Step
from kerf.model.mismatches import Mismatches, annotation
from kerf.model.plan import Plan, Reason, joined
from kerf.model.snapshot import StateNode
from kerf.model.writes import act, changed, unreadable, with_annotations, with_metadata
from kerf_api import labels
from kerf_api.defaulting import default
from kerf_api.lint import nearest
from kerf_api.lint.rules import requirement_rules, rules_nodepool
from kerf_api.resources import Resources
from kerf_api.v1 import conditions, hashes
from kerf_api.v1.conditions import FALSE, TRUE, UNKNOWN
from kerf_api.v1.ec2nodeclass import EC2NodeClass
from kerf_api.v1.meta import ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim
from kerf_api.v1.nodepool import NodePool

#: `status.resources` always has these.
_ALWAYS = Resources(dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage", "nodes"), 0))
#: For so long a registration is recent for its NodePool: each is looked at within seconds, but not all of them for
#: ever.
_LATELY = timedelta(minutes=10)
#: What keeps a pool from Ready: labels, taints and requirements (KERF-NP-101 to 119), as at run time since ever.
_FATAL_RULES = ("KERF-NP-10", "KERF-NP-11")


@dataclass(frozen=True, slots=True)
class Held:
    """What a pool has: its nodes and claims that are not on their way out.

    `joining` are claims that have not registered yet, `lately` those that have in the last minutes.
    """

    nodes: int
    capacity: Resources
    joining: tuple[NodeClaim, ...] = ()
    lately: tuple[NodeClaim, ...] = ()


#: Of a condition: status, reason and message.
Verdict = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Member:
    state: StateNode
    counts: tuple[tuple[Part, int], ...]
    lately: bool


def _member(view: View, key: str) -> tuple[_Member, datetime | None]:
    """One of a pool's nodes: what it adds to what the pool has, and until when its registration is recent."""
    state = view.snapshot.state_nodes[key]
    told = state.claim.condition("Registered") if state.claim is not None else None
    since = told.last_transition_time if told is not None and told.status == TRUE else None
    until = since + _LATELY if since is not None and since + _LATELY > view.snapshot.now else None
    return _Member(state, tuple(_counts(state)), until is not None), until


def _counts(state: StateNode) -> Iterator[tuple[Part, int]]:
    """Its capacity, once it has an instance; a malformed one is none."""
    if state.deleting or not state.provider_id:
        return
    commanded = state.claim is not None and labels.COMMAND in state.claim.metadata.annotations
    try:
        amounts = {**state.capacity, "nodes": 1}
    except ValueError:
        amounts = {"nodes": 1}
    for name, amount in amounts.items():
        yield (state.pool_name, name, commanded), amount


#: The members that speak are those that are to register, or have lately.
MEMBERS: Step[View, _Member] = Step(
    "members of NodePools",
    "state_nodes",
    _member,
    speaks=lambda member: not member.state.deleting and (member.lately or not member.state.registered),
    counts=lambda member: member.counts,
)


def held(members: Asked[_Member], pools: Iterable[str]) -> dict[str, Held]:
    """By pool, what it has without the nodes that have a command."""
    amounts: dict[str, dict[str, int]] = {name: dict(_ALWAYS) for name in pools}
    for (pool, name, commanded), amount in members.sums.items():
        if not commanded:
            amounts.setdefault(pool, dict(_ALWAYS))[name] = amount
    joining: dict[str, list[NodeClaim]] = {}
    lately: dict[str, list[NodeClaim]] = {}
    for member in members.spoken.values():
        if member.state.claim is not None:
            which = lately if member.lately else joining
            which.setdefault(member.state.pool_name, []).append(member.state.claim)
    return {
        pool: Held(own["nodes"], Resources(own), tuple(joining.get(pool, ())), tuple(lately.get(pool, ())))
        for pool, own in amounts.items()
    }


def _hash(view: View, name: str) -> tuple[str, None]:
    return hashes.nodepool_hash(view.snapshot.node_pools[name]), None


#: A pool is looked at in every plan; its hash changes when a user changes the NodePool.
HASHES: Step[View, str] = Step("hashes of NodePools", "node_pools", _hash, speaks=lambda _: False)


def _validated(view: View, name: str) -> tuple[Verdict, None]:
    spec, template = view.snapshot.pool_specs[name], view.snapshot.pool_specs[name].template
    if requirement_rules.sound(template.spec.requirements, nearest.USABLE_LABELS):
        rest = replace(template.spec, requirements=())  # there may be millions of values, and no rule is left for them
        spec = replace(spec, template=replace(template, spec=rest))
    return _verdict(msgspec.json.encode(spec)), None


@lru_cache(maxsize=128)
def _verdict(spec: bytes) -> Verdict:
    """Of a spec as JSON. Most NodePools of a cluster differ in requirements alone."""
    kind = {"apiVersion": f"{labels.GROUP}/v1", "kind": "NodePool"}
    found = rules_nodepool.check(default({**kind, "spec": msgspec.json.decode(spec)}))
    problems = [p for p in found if p.severity == "error" and p.rule.startswith(_FATAL_RULES)]
    if not problems:
        return TRUE, "ValidationSucceeded", ""
    return FALSE, "NodePoolValidationFailed", "; ".join(str(problem) for problem in problems)


#: Whether the spec is valid. The status of the pool is no source: others may have write access to it.
VALIDATIONS: Step[View, Verdict] = Step("validations of NodePools", "pool_specs", _validated, speaks=lambda _: False)


def reconcile(
    view: View,
    pool: NodePool,
    held: Held,
    own_hash: Callable[[], str],
    validation: Callable[[], Verdict],
    found: Found,
) -> Plan:
    """The pool's next write, and the re-hashing of its claims where the version of the hash is another."""
    if pool.metadata.unreadable:
        return unreadable(pool)
    if not pool.managed or pool.metadata.deleting:
        return Plan()
    current = {
        labels.NODEPOOL_HASH: own_hash(),
        labels.NODEPOOL_HASH_VERSION: hashes.NODEPOOL_HASH_VERSION,
    }
    rehashed = rehashes(pool.metadata, current, lambda: view.snapshot.claims_by_pool.get(pool.name, ()))
    node_class = view.snapshot.node_classes.get(pool.class_name)
    news = _is_news(pool, node_class)
    known = backoff.registrations(pool, view.snapshot.now)
    results = () if news else registration_health.results(view, pool, known, held.joining, held.lately)
    failed = None if news else pool_failures.failures(view, pool, held.joining, held.lately)
    shifts, events = shifted_zones.told(view, pool)
    records = mismatches.recorded(view, pool, found)
    noted = _annotated(pool, {} if rehashed else current, results, failed, shifts, annotation(records))
    after = _with_status(view, noted, node_class, validation(), held, results, records)
    own = act(*changed(pool, after, "UpdatePool", Reason("PoolStatus", f"NodePool {pool.name}")))
    own_events = Plan(events=(*events, *mismatches.reported(pool)), gauges=mismatches.gauges(pool, records))
    return joined((*rehashed, own, own_events))


def _annotated(
    pool: NodePool,
    hashes: Mapping[str, str],
    results: Registrations,
    failed: PoolFailures | None,
    shifts: str,
    records: str,
) -> NodePool:
    """With the hashes, and with the results, failures, shifts and records where there are any to remember."""
    own = (labels.REGISTRATIONS, labels.BACK_OFF, labels.ZONAL_SHIFT, labels.MISMATCHES)
    kept = {key: value for key, value in pool.metadata.annotations.items() if key not in own}
    notes = {labels.REGISTRATIONS: text_of(results)} if results else {}
    if failed is not None:
        notes[labels.BACK_OFF] = text_of(failed)
    if shifts:
        notes[labels.ZONAL_SHIFT] = shifts
    if records:
        notes[labels.MISMATCHES] = records
    return with_metadata(pool, annotations={**kept, **hashes, **notes})


# --- hashes -----------------------------------------------------------------------------------------------------
def _is_new_version(known: Mapping[str, str], current: Mapping[str, str]) -> bool:
    """Whether the object's hash was made another way. `current` has the hash's and the version's annotation."""
    return any(key.endswith("-version") and known.get(key) != value for key, value in current.items())


def rehashes(owner: ObjectMeta, current: Mapping[str, str], claims: Callable[[], Iterable[NodeClaim]]) -> list[Plan]:
    """What is left to be done before the owner of these claims may get the current version of its hash.

    They are asked for only when it has another one: who looks at them is called whenever one of them changes.
    """
    if not _is_new_version(owner.annotations, current):
        return []
    behind = (c for c in claims() if _is_new_version(c.metadata.annotations, current) and not c.metadata.unreadable)
    return [_rehash(claim, current) for claim in behind]


def _rehash(claim: NodeClaim, current: Mapping[str, str]) -> Plan:
    """The claim brought to the current version of a hash; a drifted one keeps the hash that it drifted by."""
    drifted = claim.condition("Drifted") is not None
    new = {key: value for key, value in current.items() if key.endswith("-version") or not drifted}
    reason = Reason("HashVersion", f"node claim {claim.name}")
    return act(*changed(claim, with_annotations(claim, new), "Rehash", reason))


# --- status -----------------------------------------------------------------------------------------------------
def _with_status(
    view: View,
    pool: NodePool,
    node_class: EC2NodeClass | None,
    validation: Verdict,
    held: Held,
    results: Registrations,
    records: Mismatches,
) -> NodePool:
    generation, now = pool.metadata.generation, view.now
    known = conditions.initial(pool.status.conditions, conditions.NODEPOOL_DEPENDENTS, pool.metadata.creation_timestamp)
    for type_, (status, reason, message) in (
        ("ValidationSucceeded", validation),
        ("NodeClassReady", _class_readiness(node_class)),
    ):
        known = conditions.put(known, type_, status, reason, generation=generation, now=now, message=message)
    if _is_news(pool, node_class):
        known = conditions.put(known, HEALTHY, UNKNOWN, conditions.AWAITING, generation=generation, now=now)
    else:
        known = registration_health.health(view, pool, results, held.lately, known)
    known = mismatches.with_condition(pool, records, known, now)
    known = conditions.with_root(known, conditions.NODEPOOL_DEPENDENTS, generation=generation, now=now)
    return replace(
        pool,
        status=replace(
            pool.status,
            resources=held.capacity.texts() if held.capacity != _parsed(pool) else pool.status.resources,
            nodes=held.nodes,
            node_class_observed_generation=_class_generation(pool, node_class),
            conditions=known,
        ),
    )


def _parsed(pool: NodePool) -> Resources:
    return Resources.parse(pool.status.resources)


def _is_news(pool: NodePool, node_class: EC2NodeClass | None) -> bool:
    """Whether what is known of registrations says nothing about the pool or its class as they are now."""
    health = conditions.get(pool.status.conditions, HEALTHY)
    if health is None or health.observed_generation != pool.metadata.generation:
        return True
    return _class_generation(pool, node_class) != pool.status.node_class_observed_generation


def _class_generation(pool: NodePool, node_class: EC2NodeClass | None) -> int:
    """Of the class, or the last one known."""
    return node_class.metadata.generation if node_class is not None else pool.status.node_class_observed_generation


def _class_readiness(node_class: EC2NodeClass | None) -> Verdict:
    if node_class is None:
        return FALSE, "NodeClassNotFound", "the node class does not exist"
    if node_class.metadata.deleting:
        return FALSE, "NodeClassTerminating", "the node class is being deleted"
    if node_class.metadata.unreadable:
        return FALSE, "NodeClassUnreadable", f"the node class cannot be read: {node_class.metadata.unreadable}"
    ready = conditions.get(node_class.status.conditions, conditions.READY)
    if ready is not None and ready.status == TRUE:
        return TRUE, "NodeClassReady", ""
    of = (*conditions.NODECLASS_DEPENDENTS, conditions.RESERVATIONS_READY)
    broken = conditions.first_broken(node_class.status.conditions, of)
    cause = f": {conditions.words(broken)}" if broken is not None else ""
    if ready is None or ready.status == UNKNOWN:
        return FALSE, conditions.READINESS_UNKNOWN, f"the node class is not ready yet{cause}"
    if broken is not None and f"{broken.type}={broken.status}" in ready.message:
        cause = f": {broken.text}" if broken.text else ""  # its type and status are in the message
    return FALSE, ready.reason, f"{ready.message}{cause}"
