"""The slow half in a process of its own: it sees what the loop sees, and its death is survived."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kerf.model import kinds
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node, Pod, PodSpec
from kerf.model.kubernetes.workloads import StoredTemplate
from kerf.model.memory import Memory
from kerf.model.plan import Plan, Reason, TerminateInstance
from kerf.model.settings import Settings
from kerf.model.snapshot import Findings, Proposal, Snapshot
from kerf.runtime.inbox import Changed, Inbox, Proposed, Removed
from kerf.runtime.proposer import InlineProposer, ProcessProposer, Proposer
from kerf.runtime.state.state import State
from kerf_api.v1.capacitybuffer import CapacityBuffer
from kerf_api.v1.meta import ObjectMeta

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def tell(snapshot: Snapshot, memory: Memory) -> Findings:
    """A proposal that says what was seen."""
    seen = {name: node.metadata.resource_version for name, node in sorted(snapshot.nodes.items())}
    pods = frozenset(pod.metadata.name for pod in snapshot.pods.values())
    instances = tuple(sorted(snapshot.nominated_until))
    return Findings((Proposal(str(snapshot.now), "R", "k", instances, (), os.getpid(), seen, pods),))


def tell_of_buffers(snapshot: Snapshot, memory: Memory) -> Findings:
    """What the worker knows of CapacityBuffers, and of what is being done."""
    names = (*snapshot.capacity_buffers, *snapshot.pod_templates, *snapshot.buffer_pods)
    return Findings((Proposal(str(len(snapshot.under_way)), "R", "k", names, (), 0, {}),))


def die_on_request(snapshot: Snapshot, memory: Memory) -> Findings:
    if "deadly" in snapshot.nodes:
        os._exit(1)
    if "broken" in snapshot.nodes:
        raise ZeroDivisionError
    return tell(snapshot, memory)


def node(name: str, version: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=f"uid-{name}-{version}", resource_version=version))


def pod(name: str) -> Pod:
    meta = ObjectMeta(name=name, namespace="d", uid=name, resource_version="1")
    return Pod(metadata=meta, spec=PodSpec(node_name="a"))


class Asking:
    """A state, an inbox and a proposer; asks, and waits for the answer."""

    def __init__(self, make: Callable[[Inbox], Proposer]) -> None:
        self.inbox, self.now = Inbox(), NOW
        self.state = State(Settings(cluster_name="c"), build=lambda *_: (), interpret=lambda m: None)
        self.proposer = make(self.inbox)

    def ask(self) -> Proposal | None:
        self.now += timedelta(seconds=10)
        deadline = time.monotonic() + 30
        while not self.proposer.start(self.state.snapshot(self.now), self.state.changes):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        self.state.changes.clear()
        self.inbox.wait(30)
        news = [item for item in self.inbox.drain() if isinstance(item, Proposed)]
        return news[0].proposals[0] if news else None


def test_the_worker_sees_what_changed_and_only_that_is_sent() -> None:
    asking = Asking(lambda inbox: ProcessProposer(inbox, think=tell))
    try:
        for name in ("a", "b"):
            asking.state.take(Changed(kinds.NODE, node(name, "1")), NOW)
        asking.state.take(Changed(kinds.POD, pod("p")), NOW)
        first = asking.ask()
        assert first is not None
        assert first.versions == {"a": "1", "b": "1"}
        assert first.pods == {"p"}
        assert first.saving != os.getpid()
        asking.state.take(Changed(kinds.NODE, node("a", "2")), NOW)
        asking.state.take(Removed(kinds.NODE, "", "b"), NOW)
        asking.state.take(Changed(kinds.POD, pod("q")), NOW)
        assert set(asking.state.changes) == {Ref("Node", "", "a"), Ref("Node", "", "b"), Ref("Pod", "d", "q")}
        second = asking.ask()
        assert second is not None
        assert second.versions == {"a": "2"}
        assert second.pods == {"p", "q"}
        assert second.saving == first.saving
        assert second.id == str(asking.now)
    finally:
        asking.proposer.close()


def test_a_worker_that_rests_is_gone_and_the_next_one_is_told_everything() -> None:
    asking = Asking(lambda inbox: ProcessProposer(inbox, think=tell))
    try:
        asking.state.take(Changed(kinds.NODE, node("a", "1")), NOW)
        first = asking.ask()
        assert first is not None
        asking.proposer.rest()
        with pytest.raises(ProcessLookupError):
            os.kill(first.saving, 0)
        asking.proposer.rest()
        asking.state.take(Changed(kinds.NODE, node("b", "1")), NOW)
        second = asking.ask()
        assert second is not None
        assert second.versions == {"a": "1", "b": "1"}
        assert second.saving != first.saving
    finally:
        asking.proposer.close()


def test_the_worker_sees_buffers_and_what_is_under_way() -> None:
    asking = Asking(lambda inbox: ProcessProposer(inbox, think=tell_of_buffers))
    try:
        meta = ObjectMeta(name="x", namespace="d", uid="x", resource_version="1")
        asking.state.take(Changed(kinds.CAPACITY_BUFFER, CapacityBuffer(metadata=meta)), NOW)
        asking.state.take(Changed(kinds.POD_TEMPLATE, StoredTemplate(metadata=meta)), NOW)
        asking.state.planned(Plan(provisioned=True, buffer_pods={"node/a": 1}), NOW)
        asking.state.under_way = (TerminateInstance(instance_id="i", reason=Reason("Test")),)
        told = asking.ask()
        assert told is not None
        assert (told.id, told.candidates) == ("1", ("d/x", "d/x", "node/a"))
    finally:
        asking.proposer.close()


def test_a_worker_that_dies_is_replaced_and_told_everything() -> None:
    errors: list[Exception] = []
    woken: list[Inbox] = []

    def make(inbox: Inbox) -> Proposer:
        woken.append(inbox)

        def failed(error: Exception) -> None:
            errors.append(error)
            inbox.wake()

        return ProcessProposer(inbox, failed, die_on_request)

    asking = Asking(make)
    try:
        asking.state.take(Changed(kinds.NODE, node("kept", "1")), NOW)
        asking.state.take(Changed(kinds.NODE, node("deadly", "1")), NOW)
        assert asking.ask() is None
        asking.state.take(Removed(kinds.NODE, "", "deadly"), NOW)
        asking.state.take(Changed(kinds.NODE, node("broken", "1")), NOW)
        assert asking.ask() is None
        assert len(errors) == 2
        asking.state.take(Removed(kinds.NODE, "", "broken"), NOW)
        answer = asking.ask()
        assert answer is not None
        assert answer.versions == {"kept": "1"}
    finally:
        asking.proposer.close()


def test_a_worker_that_missed_changes_is_told_everything() -> None:
    asking = Asking(lambda inbox: ProcessProposer(inbox, think=tell))
    try:
        asking.state.take(Changed(kinds.NODE, node("a", "1")), NOW)
        assert asking.ask() is not None
        asking.state.take(Changed(kinds.NODE, node("b", "1")), NOW)
        asking.state.changes.clear()
        asking.proposer.forget()
        answer = asking.ask()
        assert answer is not None
        assert answer.versions == {"a": "1", "b": "1"}
    finally:
        asking.proposer.close()


def test_inline_thinks_at_once() -> None:
    asking = Asking(lambda inbox: InlineProposer(inbox, tell))
    asking.state.take(Changed(kinds.NODE, node("a", "1")), NOW)
    answer = asking.ask()
    assert answer is not None
    assert answer.saving == os.getpid()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_worker_is_the_only_process_beside_ours() -> None:
    before = children()
    asking = Asking(lambda inbox: ProcessProposer(inbox, think=tell))
    try:
        asking.state.take(Changed(kinds.NODE, node("a", "1")), NOW)
        answer = asking.ask()
        assert answer is not None
        assert children() - before == {answer.saving}
    finally:
        asking.proposer.close()
    assert children() <= before


def children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}
