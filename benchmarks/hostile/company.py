"""Shapes of pods that are dear to place together: affinity, anti-affinity, spreads, host ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from benchmarks.hostile.pods import FAMILY, KEY, PREFERRED, REQUIRED, ZONES, Json, Shape, made, of_app, row, terms
from kerf_api import labels


def _term(selected: Json, key: str = labels.HOSTNAME, **more: Any) -> Json:
    return {"topologyKey": key, "labelSelector": selected, **more}


def _affinity(kind: str, *rows: Json) -> Json:
    return {"affinity": {kind: {REQUIRED: list(rows)}}}


def _spread(selected: Json, key: str = labels.ZONE, when: str = "DoNotSchedule", **more: Any) -> Json:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selected, **more}


def anti_terms(number: int, key: str = labels.HOSTNAME) -> list[Json]:
    """20 terms each, all different."""
    return made(number, lambda i: _affinity("podAntiAffinity", *(_term(of_app(i * 20 + j), key) for j in range(20))))


def anti_each_other(number: int) -> list[Json]:
    """Each keeps away from the next 20."""
    return made(number, lambda i: _affinity("podAntiAffinity", *(_term(of_app(i + j + 1)) for j in range(20))))


def anti_all(number: int) -> list[Json]:
    """Each keeps away from all others, in its own words."""

    def each(i: int) -> Json:
        rows = [{"key": "app", "operator": "NotIn", "values": [f"other{i}"]}]
        return _affinity("podAntiAffinity", _term({"matchExpressions": rows}))

    return made(number, each)


def anti_zones(number: int) -> list[Json]:
    return anti_terms(number, labels.ZONE)


def chain(number: int, key: str = labels.HOSTNAME) -> list[Json]:
    """Each must be near the one before."""
    return made(number, lambda i: _affinity("podAffinity", _term(of_app(i - 1), key)) if i else {})


def chain_backwards(number: int) -> list[Json]:
    """Each must be near the next one: none has a place before the last."""
    return made(number, lambda i: _affinity("podAffinity", _term(of_app(i + 1))) if i < number - 1 else {})


def ring(number: int) -> list[Json]:
    return made(number, lambda i: _affinity("podAffinity", _term(of_app((i + 1) % number))))


def zone_chain(number: int) -> list[Json]:
    return chain(number, labels.ZONE)


def affinity_terms(number: int) -> list[Json]:
    """20 terms each that no pod meets."""
    return made(number, lambda i: _affinity("podAffinity", *(_term(of_app(-1 - i * 20 - j)) for j in range(20))))


def namespace_selectors(number: int) -> list[Json]:
    def each(i: int) -> Json:
        chosen = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": [f"t{i}"]}]}
        return _affinity("podAntiAffinity", _term(of_app(i), namespaceSelector=chosen))

    return made(number, each)


def spreads(number: int, when: str = "DoNotSchedule", key: str = labels.ZONE) -> list[Json]:
    """20 spreads each, all different."""
    return made(
        number, lambda i: {"topologySpreadConstraints": [_spread(of_app(i * 20 + j), key, when) for j in range(20)]}
    )


def spreads_anyway(number: int) -> list[Json]:
    return spreads(number, "ScheduleAnyway")


def spreads_over_hosts(number: int) -> list[Json]:
    return spreads(number, key=labels.HOSTNAME)


def spreads_of_all(number: int) -> list[Json]:
    """Each is counted by the spreads of all others."""

    def each(i: int) -> Json:
        rows = [{"key": "app", "operator": "NotIn", "values": [f"other{i}"]}]
        return {"topologySpreadConstraints": [_spread({"matchExpressions": rows})]}

    return made(number, each)


def spreads_over_keys(number: int) -> list[Json]:
    """Over the instance type, its family, its size and the zone at once."""
    keys = (labels.INSTANCE_TYPE, FAMILY, "karpenter.k8s.aws/instance-size", labels.ZONE)
    return made(number, lambda i: {"topologySpreadConstraints": [_spread(of_app(i), key) for key in keys]})


def spreads_with_domains(number: int) -> list[Json]:
    return made(number, lambda i: {"topologySpreadConstraints": [_spread(of_app(i), minDomains=2**31 - 1 - i)]})


def spreads_with_filters(number: int) -> list[Json]:
    """The domains of each are others: the pods differ in their node affinity."""

    def each(i: int) -> Json:
        same = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        return {
            "topologySpreadConstraints": [_spread(same, nodeAffinityPolicy="Honor")],
            **terms([row(KEY, "NotIn", f"v{i}")]),
        }

    return made(number, each)


def spreads_of_one(number: int) -> list[Json]:
    """All are counted together, and only one zone is open to each."""

    def each(i: int) -> Json:
        same = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        return {"topologySpreadConstraints": [_spread(same)], "nodeSelector": {labels.ZONE: ZONES[i % 3]}}

    return made(number, each)


def match_label_keys(number: int) -> list[Json]:
    return made(
        number,
        lambda i: {"topologySpreadConstraints": [_spread({"matchLabels": {}}, matchLabelKeys=["app"])]},
    )


def _with_ports(number: int, each: Callable[[int], list[Json]]) -> list[Json]:
    found = made(number, lambda i: {})
    for i, one in enumerate(found):
        one["spec"]["containers"][0]["ports"] = each(i)
    return found


def ports(number: int) -> list[Json]:
    """50 host ports each, all different."""
    return _with_ports(number, lambda i: [_port(1 + (i * 50 + j) % 65000) for j in range(50)])


def same_port(number: int) -> list[Json]:
    return _with_ports(number, lambda i: [_port(80)])


def overlapping_ports(number: int) -> list[Json]:
    return _with_ports(number, lambda i: [_port(1000 + i + j) for j in range(50)])


def _port(number: int) -> Json:
    return {"containerPort": number, "hostPort": number}


def not_in_and_apart(number: int) -> list[Json]:
    """Another requirement and another anti-affinity for each."""
    return made(
        number,
        lambda i: {
            "affinity": {
                **terms([row(KEY, "NotIn", f"v{i}")])["affinity"],
                "podAntiAffinity": {REQUIRED: [_term(of_app(i + 1))]},
            }
        },
    )


def preferred_spread_and_near(number: int) -> list[Json]:
    rows = [{"weight": 1, "podAffinityTerm": _term({"matchExpressions": [{"key": "app", "operator": "Exists"}]})}]
    return made(
        number,
        lambda i: {
            "affinity": {"podAffinity": {PREFERRED: rows}},
            "topologySpreadConstraints": [_spread(of_app(i), when="ScheduleAnyway")],
        },
    )


SHAPES: Final[dict[str, Shape]] = {
    "20 anti-affinity terms": anti_terms,
    "anti-affinity to the next 20": anti_each_other,
    "anti-affinity to all others": anti_all,
    "20 anti-affinity terms, zones": anti_zones,
    "near the one before": chain,
    "near the next": chain_backwards,
    "near each other in a ring": ring,
    "near the one before, zones": zone_chain,
    "20 affinity terms, unmet": affinity_terms,
    "namespace selectors": namespace_selectors,
    "20 spreads": spreads,
    "20 spreads, ScheduleAnyway": spreads_anyway,
    "20 spreads over hosts": spreads_over_hosts,
    "spreads that count all": spreads_of_all,
    "spreads over four keys": spreads_over_keys,
    "spreads with minDomains": spreads_with_domains,
    "spreads with filters": spreads_with_filters,
    "spreads of one, zones chosen": spreads_of_one,
    "matchLabelKeys": match_label_keys,
    "50 host ports": ports,
    "the same host port": same_port,
    "overlapping host ports": overlapping_ports,
    "NotIn and anti-affinity": not_in_and_apart,
    "preferences of both sorts": preferred_spread_and_near,
}
