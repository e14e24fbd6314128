"""The cluster's indexes: whatever the order of the news, they show what a rebuild from the survivors shows.

A small server keeps the truth: it creates, changes, deletes and creates again, and gives every change the next resource
version. Its news then reaches the indexes late, twice, out of order and mixed with lists, as watches, lists and the
answers to our own writes do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.model import kinds
from kerf.model.cluster import Cluster, build
from kerf.model.kinds import Kind
from kerf.model.kubernetes import pods
from kerf.model.kubernetes.objects import Node, NodeSpec, Pod, PodCondition, PodSpec, PodStatus
from kerf.model.settings import Settings
from kerf.model.snapshot import Snapshot, StateNode
from kerf_api.v1.meta import NodeClassRef, ObjectMeta
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(cluster_name="test")
KINDS = (kinds.POD, kinds.NODE, kinds.NODE_CLAIM)
NAMES = ("a", "b")
UNSCHEDULABLE = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")


@dataclass(frozen=True)
class Edit:
    """Create the object, change it or (with `delete`) delete it. `place` is a node's name or a provider ID; a pod that
    is only `expected` on its node is not bound to it."""

    kind: Kind
    name: str
    place: str = ""
    refused: bool = True
    delete: bool = False
    expected: bool = False


@dataclass(frozen=True)
class Event:
    """What the server says of one change; `value` is the object as it is, or was last."""

    kind: Kind
    value: Any
    deleted: bool


@dataclass
class Server:
    """Does the edits one after the other; the n-th change that takes place has the resource version n."""

    live: dict[tuple[str, str], Any] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)

    def edit(self, edit: Edit) -> None:
        key, version = (edit.kind.name, edit.name), len(self.history) + 1
        known = self.live.get(key)
        if edit.delete:
            if known is not None:
                self.history.append(Event(edit.kind, self.live.pop(key), True))
            return
        uid = known.metadata.uid if known is not None else f"uid-{version}"
        self.live[key] = made(edit, uid, version)
        self.history.append(Event(edit.kind, self.live[key], False))

    def list_at(self, kind: Kind, version: int) -> list[Any]:
        """The objects of a kind as they were at a resource version."""
        found: dict[str, Any] = {}
        for event in self.history[:version]:
            if event.kind is kind and event.deleted:
                del found[event.value.metadata.name]
            elif event.kind is kind:
                found[event.value.metadata.name] = event.value
        return list(found.values())


def made(edit: Edit, uid: str, version: int) -> Any:
    meta = ObjectMeta(name=edit.name, uid=uid, resource_version=str(version))
    if edit.kind is kinds.NODE:
        return Node(metadata=meta, spec=NodeSpec(provider_id=edit.place))
    if edit.kind is kinds.NODE_CLAIM:
        spec = NodeClaimSpec(node_class_ref=NodeClassRef(name="default"))
        return NodeClaim(metadata=meta, spec=spec, status=NodeClaimStatus(provider_id=edit.place))
    meta = ObjectMeta(name=edit.name, uid=uid, resource_version=str(version), namespace="default")
    bound, nominated = ("", edit.place) if edit.expected else (edit.place, "")
    conditions = (UNSCHEDULABLE,) if edit.refused else ()
    status = PodStatus(phase="Pending", conditions=conditions, nominated_node_name=nominated)
    return Pod(metadata=meta, spec=PodSpec(node_name=bound), status=status)


# --- news -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Listing:
    """A complete list of a kind as of a resource version."""

    kind: Kind
    version: int


News = Event | Listing


def deliver(cluster: Cluster, server: Server, news: News) -> None:
    if isinstance(news, Listing):
        cluster.replace_all(news.kind, server.list_at(news.kind, news.version), str(news.version))
    elif news.deleted:
        cluster.remove(news.kind, news.value.metadata.namespace, news.value.metadata.name, news.value.metadata.uid)
    else:
        cluster.apply(news.kind, news.value)


edits = st.builds(
    Edit,
    kind=st.sampled_from(KINDS),
    name=st.sampled_from(NAMES),
    place=st.sampled_from(("", "a", "a", "b")),
    refused=st.booleans(),
    delete=st.sampled_from((False, False, True)),
    expected=st.booleans(),
)


@st.composite
def servers(draw: st.DrawFn) -> Server:
    server = Server()
    for edit in draw(st.lists(edits, min_size=1, max_size=14)):
        server.edit(edit)
    return server


def listings(server: Server) -> st.SearchStrategy[Listing]:
    return st.builds(Listing, st.sampled_from(KINDS), st.integers(0, len(server.history)))


def any_news(server: Server) -> st.SearchStrategy[list[News]]:
    """Some of what happened, in any order, any number of times, and old lists in between."""
    events = st.sampled_from(server.history) if server.history else st.nothing()
    return st.lists(events | listings(server), max_size=14)


# --- what is compared -------------------------------------------------------------------------------------------
def shown(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that follows events, by value."""
    return {
        "pods": dict(snapshot.pods),
        "pending": dict(snapshot.pods.pending),
        "by node": {name: dict(found) for name, found in snapshot.pods.by_node.items()},
        "nominated": {name: dict(found) for name, found in snapshot.pods.nominated.items()},
        "nodes": dict(snapshot.nodes),
        "claims": dict(snapshot.node_claims),
        "state nodes": dict(snapshot.state_nodes),
    }


def view(cluster: Cluster) -> dict[str, Any]:
    return shown(cluster.snapshot(now=NOW, settings=SETTINGS))


def survivors(cluster: Cluster) -> list[Any]:
    """All objects that it holds, of every kind."""
    return [value for kind in KINDS for value in cluster.objects(kind).values()]


def by_the_book(values: list[Any]) -> dict[str, Any]:
    """The same view, written down from the definitions and without an index."""
    of: Mapping[type, list[Any]] = {kind.type: [v for v in values if isinstance(v, kind.type)] for kind in KINDS}
    all_pods, nodes = {pod.key: pod for pod in of[Pod]}, {node.name: node for node in of[Node]}
    taken, state = set(), {}
    for claim in of[NodeClaim]:
        provider = claim.status.provider_id
        node = min((n for n in of[Node] if provider and n.spec.provider_id == provider), key=_name, default=None)
        taken |= {node.name} if node is not None else set()
        state[claim.name] = StateNode(claim, node)
    state |= {f"node/{node.name}": StateNode(None, node) for node in of[Node] if node.name not in taken}
    return {
        "pods": all_pods,
        "pending": {k: p for k, p in all_pods.items() if not p.spec.node_name and pods.provisionable(p, nodes)},
        "by node": {
            name: {k: p for k, p in all_pods.items() if p.spec.node_name == name}
            for name in {p.spec.node_name for p in all_pods.values()} - {""}
        },
        "nominated": {
            name: {k: p for k, p in all_pods.items() if not p.spec.node_name and p.status.nominated_node_name == name}
            for name in {p.status.nominated_node_name for p in all_pods.values() if not p.spec.node_name} - {""}
        },
        "nodes": nodes,
        "claims": {claim.name: claim for claim in of[NodeClaim]},
        "state nodes": state,
    }


def _name(node: Node) -> str:
    return node.name


def truth(server: Server) -> dict[str, Any]:
    return by_the_book(list(server.live.values()))


# --- the laws ---------------------------------------------------------------------------------------------------
@settings(max_examples=200)
@given(st.data())
def test_incremental_equals_a_rebuild_from_the_survivors(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in server.history + data.draw(any_news(server)):
        deliver(cluster, server, news)
        assert view(cluster) == by_the_book(survivors(cluster))
    again = data.draw(st.permutations(survivors(cluster)))
    assert view(cluster) == shown(build(again, now=NOW, settings=SETTINGS))


@given(st.data())
def test_once_all_news_has_arrived_in_any_order_the_truth_is_shown(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in data.draw(any_news(server)) + data.draw(st.permutations(server.history)):
        deliver(cluster, server, news)
    assert view(cluster) == truth(server)


@given(st.data())
def test_a_list_shows_the_truth_and_news_from_before_it_changes_nothing(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in data.draw(any_news(server)):
        deliver(cluster, server, news)
    for kind in KINDS:
        deliver(cluster, server, Listing(kind, len(server.history)))
    assert view(cluster) == truth(server)
    for event in data.draw(st.permutations(server.history)):
        deliver(cluster, server, event)
        assert view(cluster) == truth(server)


@given(st.data())
def test_no_news_takes_a_living_object_back_to_an_older_version(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in data.draw(any_news(server)):
        before = {(type(v), v.metadata.name): v for v in survivors(cluster)}
        deliver(cluster, server, news)
        for value in survivors(cluster):
            old = before.get((type(value), value.metadata.name))
            assert old is None or _version(value) >= _version(old)


@given(st.data())
def test_a_list_keeps_what_is_newer_than_itself(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in data.draw(any_news(server)):
        deliver(cluster, server, news)
    listing = data.draw(listings(server))
    newer = [v for v in cluster.objects(listing.kind).values() if _version(v) > listing.version]
    deliver(cluster, server, listing)
    assert [v for v in newer if v not in cluster.objects(listing.kind).values()] == []


@given(st.data())
def test_what_is_refused_changes_nothing_and_what_a_list_changes_is_returned(data: st.DataObject) -> None:
    server, cluster = data.draw(servers()), Cluster()
    for news in data.draw(any_news(server)):
        before = view(cluster)
        if isinstance(news, Listing):
            known = list(cluster.objects(news.kind).values())
            told = cluster.replace_all(news.kind, server.list_at(news.kind, news.version), str(news.version))
            now = {v.metadata.name: v for v in cluster.objects(news.kind).values()}
            lost = [old.metadata.name for old, new in told if old is not None and new is None]
            assert [v.metadata.name for v in known if v.metadata.name not in now] == lost
            assert all(now[new.metadata.name] is new for _, new in told if new is not None)
            assert len(told) == len({one.metadata.name for old, new in told if (one := old or new)})
        elif not news.deleted and not cluster.apply(news.kind, news.value):
            assert view(cluster) == before


def _version(value: Any) -> int:
    return int(value.metadata.resource_version)


# --- examples that a person can read ----------------------------------------------------------------------------
POD_A = Edit(kinds.POD, "a")


def test_a_late_event_of_the_predecessor_does_not_replace_its_successor() -> None:
    cluster = Cluster()
    first, successor = made(POD_A, "uid-1", 1), made(POD_A, "uid-2", 3)
    assert cluster.apply(kinds.POD, successor)
    assert not cluster.apply(kinds.POD, first)
    assert cluster.remove(kinds.POD, "default", "a", "uid-1") is None
    assert list(cluster.objects(kinds.POD).values()) == [successor]


def test_a_late_answer_to_our_own_write_does_not_bring_back_what_a_list_lacks() -> None:
    cluster = Cluster()
    cluster.replace_all(kinds.POD, [], "10")
    assert not cluster.apply(kinds.POD, made(POD_A, "uid-1", 9))
    assert cluster.apply(kinds.POD, made(POD_A, "uid-2", 11))


def test_two_nodes_with_one_provider_id_are_both_seen() -> None:
    twins = [made(Edit(kinds.NODE, name, place="same"), f"uid-{name}", 1) for name in NAMES]
    claim = made(Edit(kinds.NODE_CLAIM, "claim", place="same"), "uid-c", 2)
    for order in ([*twins, claim], [claim, *reversed(twins)]):
        state = build(order, now=NOW, settings=SETTINGS).state_nodes
        assert dict(state) == {"claim": StateNode(claim, twins[0]), "node/b": StateNode(None, twins[1])}
