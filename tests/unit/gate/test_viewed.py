"""What a person sees of a cluster: the names in namespaces whose pods that person may list, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from flask import Flask, Response
from msgspec.structs import replace

from kerf.model import kinds
from kerf.model.changes.pdbs import Budget
from kerf.model.kubernetes.objects import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kerf.views import redaction
from kerf_api.v1.meta import ObjectMeta
from tests.unit.gate.worlds import HOST, SECRET, Cluster, Tried, objects

#: Values for the parts of addresses: names that are there, names that are hidden, and names in place of these.
PARTS = {
    "name": ("node-a", "node-b", "claim-node-a", f"{SECRET}-1", f"{SECRET}-3", "shop-3", "pod-1"),
    "namespace": ("shop", SECRET, redaction.OTHERS),
    "filename": ("kerf.css",),
}
QUERIES = ("", "?sort=price&page=2", f"?q={SECRET}", "?label=app", "?nodepool=default")


@pytest.fixture(scope="module")
def tried() -> Tried:
    return Tried(Cluster())


def addresses(app: Flask) -> Iterator[str]:
    """Every address that the app answers, with all values of PARTS. An unknown part is an error: name values for it."""
    for rule in app.url_map.iter_rules():
        found = [rule.rule]
        for part in rule.arguments:
            found = [
                one.replace(f"<path:{part}>", value).replace(f"<{part}>", value)
                for one in found
                for value in PARTS[part]
            ]
        yield from (one + query for one in found for query in QUERIES)


def test_no_address_shows_a_name_of_another_namespace(tried: Tried) -> None:
    """Views that are added later are walked too."""
    walked = list(addresses(tried.app))
    assert len(walked) > 100
    for token in ("none-token", "shop-token"):
        for address in walked:
            answer = tried.get(address, token=token)
            path, _, query = address.partition("?")
            assert SECRET not in path or answer.status_code == 404
            # An error repeats the name that was asked for, a form the text of its filter.
            shown = answer.text.replace(path.split("/", 2)[-1], "").replace(f'value="{query[2:]}"', "")
            assert SECRET not in shown, (token, address, shown)


def test_the_same_walk_finds_the_names_for_who_may_see_them(tried: Tried) -> None:
    shown = "".join(
        tried.get(address, token="admin-token").text for address in addresses(tried.app) if "?" not in address
    )
    for part in ("-1", "-3", "-web", "-job", "-budget", "-huge", ""):
        assert f"{SECRET}{part}" in shown, part


def test_one_namespace_is_shown_with_its_names(tried: Tried) -> None:
    text = tried.get("/nodes/node-a", token="shop-token").text
    assert "PodDisruptionBudget shop/shop-budget" in text
    assert f"PodDisruptionBudget {redaction.OTHERS}/budget-2" in text
    assert "1 namespace with their pods&#39; names" in text
    assert "shop-3" in tried.get("/pending", token="shop-token").text


def test_a_hidden_pod_is_answered_as_one_that_is_not_there(tried: Tried) -> None:
    hidden = tried.get(f"/pods/{SECRET}/{SECRET}-1", token="shop-token")
    missing = tried.get("/pods/other/other-1", token="shop-token")
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.text.replace(f"{SECRET}/{SECRET}-1", "") == missing.text.replace("other/other-1", "")


def test_totals_and_blockers_are_those_of_the_whole_cluster(tried: Tried) -> None:
    full, none = (tried.readings.latest.board(some) for some in (None, frozenset[str]()))  # type: ignore[union-attr]
    assert (none.pods, none.price, none.costs.total, none.costs.unused) == (
        full.pods,
        full.price,
        full.costs.total,
        full.costs.unused,
    )
    assert none.price > 0
    assert [(row.cpu, row.memory, bool(row.stays)) for row in none.nodes] == [
        (row.cpu, row.memory, bool(row.stays)) for row in full.nodes
    ]
    assert [row.name for row in none.costs.by_namespace] == [redaction.OTHERS]
    assert (full.waiting, none.waiting) == (2, 0)


def test_kinds_that_nobody_decided_about_are_hidden() -> None:
    """A kind without a namespace is shown only after a decision in `kerf.views.redaction`."""
    cluster = {kind for kind in kinds.KNOWN if kind.cluster_scoped}
    decided = {
        *redaction.SHOWN_KINDS,
        kinds.NODE_POOL,
        kinds.NAMESPACE,
        kinds.NODE_CLAIM,
        kinds.PV,
        kinds.VOLUME_ATTACHMENT,
    }
    assert cluster == decided


def test_a_stream_is_not_begun() -> None:
    """The worker sends whole answers; 204 ends the questions of an EventSource."""
    tried = Tried(Cluster())
    tried.app.add_url_rule("/updates", "updates", lambda: Response(iter(["data: 1\n\n"]), mimetype="text/event-stream"))
    answer = tried.get("/updates", token="admin-token")
    assert (answer.status_code, answer.data) == (204, b"")


@pytest.mark.parametrize(
    ("path", "status", "place"),
    [
        ("/nodes//x", 308, "/nodes/x"),
        ("/nodes//node-a?at=1", 308, "/nodes/node-a?at=1"),
        ("/static//kerf.css", 308, "/static/kerf.css"),
        *((path, 404, None) for path in ("/nodes", "/nodes/", "/next/", "/static/", "/static/../app.py", "/pods/a")),
        *((path, 404, None) for path in ("/%00", "/nodes/%ff", "/%2e%2e/etc/passwd", "/nodes/a%0d%0ab", "/events")),
    ],
)
def test_addresses_that_are_no_page(tried: Tried, path: str, status: int, place: str | None) -> None:
    """Never an empty success. The place is one of this page's own host."""
    answer = tried.get(path, token="admin-token")
    assert (answer.status_code, bool(answer.data)) == (status, True)
    assert answer.headers.get("Location") == (None if place is None else f"http://{HOST}{place}")


def test_an_answer_in_parts_is_sent_as_a_whole() -> None:
    tried = Tried(Cluster())
    tried.app.add_url_rule("/parts", "parts", lambda: Response(iter(["a", "b"]), mimetype="text/plain"))
    answer = tried.get("/parts", token="admin-token")
    assert (answer.status_code, answer.data) == (200, b"ab")


def test_the_objects_of_a_reader_hold_no_other_name() -> None:
    found = redaction.Redaction(Cluster().objects).shown({"shop"})
    assert SECRET not in msgspec.json.encode(found).decode()
    pods = [one.metadata.name for one in found["Pod"]]
    assert pods == ["shop-1", "shop-2", "shop-3", "pod-3", "pod-4"]
    assert [one.metadata.name for one in found["PersistentVolume"]] == ["pv-shop"]
    assert [one.metadata.name for one in found["VolumeAttachment"]] == ["csi-shop"]


def test_readers_share_the_objects_that_they_see_alike() -> None:
    """A further reader costs lists of references, not objects."""
    made = redaction.Redaction(Cluster().objects)
    none, shop = made.shown(()), made.shown({"shop"})
    hidden = {id(one) for one in none["Pod"]}
    assert sum(id(one) in hidden for one in shop["Pod"]) == 2
    for kind in ("NodeClaim", "NodePool", "Node"):
        assert list(map(id, none[kind])) == list(map(id, shop[kind]))


def test_numbers_of_hidden_pods_do_not_follow_their_names() -> None:
    """Else the gaps between them would show where hidden names stand among shown ones."""
    cluster = Cluster()
    pods = [replace(one, metadata=replace(one.metadata, uid=one.metadata.name[::-1])) for one in cluster.objects["Pod"]]
    found = redaction.Redaction({**cluster.objects, "Pod": pods}).shown(())["Pod"]
    assert sorted(one.metadata.name for one in found) == ["pod-1", "pod-2", "pod-3", "pod-4"]
    assert [one.metadata.name for one in found if one.spec.node_name == "node-a"] == ["pod-1", "pod-2"]


def test_hidden_budgets_have_their_effect_without_amounts() -> None:
    """Amounts are text, and the counts of a status repeat them."""
    some = [
        PodDisruptionBudget(metadata=ObjectMeta(name=f"b{number}", namespace=SECRET, generation=generation), **parts)
        for number, (generation, parts) in enumerate(BUDGETS)
    ]
    found = redaction.Redaction({kinds.PDB.name: some}).shown(())[kinds.PDB.name]
    assert [_effect(one) for one in found] == [_effect(one) for one in some]
    assert len({_effect(one) for one in found}) >= 4
    text = msgspec.json.encode(found).decode()
    assert "zebra" not in text
    assert "73" not in text


BUDGETS: list[tuple[int, dict[str, Any]]] = [
    (73, {"spec": PodDisruptionBudgetSpec(min_available=f"73% {SECRET}")}),
    (1, {"spec": PodDisruptionBudgetSpec(min_available="100%")}),
    (1, {"spec": PodDisruptionBudgetSpec(max_unavailable="0%")}),
    (1, {"spec": PodDisruptionBudgetSpec(max_unavailable=73, unhealthy_pod_eviction_policy="AlwaysAllow")}),
    (2, {"status": PodDisruptionBudgetStatus(disruptions_allowed=73, observed_generation=2)}),
    (2, {"status": PodDisruptionBudgetStatus(disruptions_allowed=73, observed_generation=1)}),
    (1, {"status": PodDisruptionBudgetStatus(current_healthy=73, desired_healthy=73, expected_pods=73)}),
    (1, {"status": PodDisruptionBudgetStatus(current_healthy=72, desired_healthy=73, expected_pods=73)}),
]


def _effect(pdb: PodDisruptionBudget) -> tuple[bool, bool, bool]:
    effect = Budget.of(pdb)
    return effect.allows, effect.closed, effect.frees_unready


def test_the_pods_of_a_failed_canary_are_hidden() -> None:
    found = redaction.Redaction(objects()).shown({"shop"})
    (pool,) = found[kinds.NODE_POOL.name]
    assert SECRET not in str(pool.metadata.annotations)
    assert "some of its pods fail" in str(pool.metadata.annotations)
