"""The nine lines that a public parser of Karpenter's logs reads, held against what is known of its expressions.

They are written here anew from those facts: which keys it looks for, which of them must be neighbours, and which last.
"""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.disruption.command import Command
from kerf.model import kinds
from kerf.model.annotations import text_of
from kerf.model.kinds import Ref
from kerf.model.kubernetes.objects import Node
from kerf.model.plan import CreateNodeClaim, DeleteObject, PatchObject, Reason
from kerf.sandbox.clock import VirtualClock
from kerf.telemetry.events import EventWriter
from kerf.telemetry.log.logs import make_logger
from kerf.telemetry.series.metrics import Metrics
from kerf.telemetry.telemetry import Telemetry
from kerf_api.v1.meta import Condition, Entry, NodeClassRef, ObjectMeta, OwnerReference
from kerf_api.v1.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus

ID = r"[0-9a-f-]{36}"
HEAD = r'\{"level":"INFO","time":"2026-08-19T10:11:12\.345Z","logger":"controller","message":"%s","commit":"490ef94",'
CLAIM = (
    r'"controller":"nodeclaim\.lifecycle","controllerGroup":"karpenter\.sh","controllerKind":"NodeClaim",'
    rf'"NodeClaim":\{{"name":"c"\}},"namespace":"","name":"c","reconcileID":"{ID}",'
)
NODE = r'"Node":\{"name":"n"\}'
PROVIDER = r'"provider-id":"aws:///us-west-2a/i-1"'
SINGLE = rf'"namespace":"","name":"","reconcileID":"{ID}",'
TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp"


class Nobody:
    def emit(self, *told: object, **more: object) -> None:
        """Events are no concern here."""


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def told(stream: io.StringIO) -> Telemetry:
    moment, clock = datetime(2026, 8, 19, 10, 11, 12, 345678, tzinfo=UTC), VirtualClock()
    log = make_logger("info", stream, lambda: moment, commit="490ef94")
    return Telemetry(log, Metrics(), EventWriter(Nobody(), clock), clock)  # type: ignore[arg-type]


def claim(*conditions: str, annotations: dict[str, str] | None = None) -> NodeClaim:
    own = {
        "karpenter.sh/nodepool": "general",
        "karpenter.sh/capacity-type": "spot",
        "node.kubernetes.io/instance-type": "m6a.large",
        "topology.kubernetes.io/zone": "us-west-2a",
    }
    return NodeClaim(
        metadata=ObjectMeta(name="c", uid="u", labels=own, annotations=annotations or {}),
        spec=NodeClaimSpec(node_class_ref=NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")),
        status=NodeClaimStatus(
            provider_id="aws:///us-west-2a/i-1",
            node_name="n",
            allocatable={"cpu": "1930m"},
            conditions=tuple(Condition(type=one, status="True", reason=one) for one in conditions),
        ),
    )


def the_line(stream: io.StringIO, message: str) -> str:
    (found,) = [line for line in stream.getvalue().splitlines() if json.loads(line)["message"] == message]
    return found


def held(line: str, message: str, *rest: str) -> None:
    wanted = HEAD % re.escape(message) + "".join(rest) + r"\}"
    assert re.fullmatch(wanted, line), f"{line}\nis not\n{wanted}"


def test_created(told: Telemetry, stream: io.StringIO) -> None:
    types = tuple(f"m{n}.large" for n in range(7))
    wanted = Entry(key="node.kubernetes.io/instance-type", operator="In", values=types)
    made = claim()
    made = replace(made, spec=replace(made.spec, requirements=(wanted,)))
    with told.look():
        told.done(CreateNodeClaim(reason=Reason("Provisioned"), claim=made), "ok", None, None, None)
    shown = "m0.large, m1.large, m2.large, m3.large, m4.large and 2 other\\(s\\)"
    names = r'"NodePool":\{"name":"general"\},"NodeClaim":\{"name":"c"\},"requests":\{\},'
    end = rf'"instance-types":"{shown}"'
    held(the_line(stream, "created nodeclaim"), "created nodeclaim", r'"controller":"provisioner",', SINGLE, names, end)


STEPS = {
    "Launched": '"instance-type":"m6a.large","zone":"us-west-2a","capacity-type":"spot",'
    r'"allocatable":\{"cpu":"1930m"\}',
    "Registered": NODE,
    "Initialized": NODE + r',"allocatable":\{"cpu":"1930m"\}',
}


@pytest.mark.parametrize("condition", STEPS)
def test_launched_registered_and_initialized(condition: str, told: Telemetry, stream: io.StringIO) -> None:
    message = f"{condition.lower()} nodeclaim"
    with told.look():
        told.object_changed(kinds.NODE_CLAIM, claim(), claim(condition))
    held(the_line(stream, message), message, CLAIM, PROVIDER, ",", STEPS[condition])


def test_deleted(told: Telemetry, stream: io.StringIO) -> None:
    with told.look():
        told.object_changed(kinds.NODE_CLAIM, claim(), None)
    held(the_line(stream, "deleted nodeclaim"), "deleted nodeclaim", CLAIM, PROVIDER, ",", NODE)


def test_annotated(told: Telemetry, stream: io.StringIO) -> None:
    ends = claim(annotations={TIMESTAMP: "2026-08-19T11:00:00Z"})
    with told.look():
        told.object_changed(kinds.NODE_CLAIM, claim(), ends)
        told.object_changed(kinds.NODE_CLAIM, ends, ends)
    end = re.escape(f'"{TIMESTAMP}":"2026-08-19T11:00:00Z"')
    held(the_line(stream, "annotated nodeclaim"), "annotated nodeclaim", CLAIM, end)


def test_tainted(told: Telemetry, stream: io.StringIO) -> None:
    owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodeClaim", name="c", uid="u")
    node = Node(metadata=ObjectMeta(name="n", owner_references=(owner,)))
    deed = PatchObject(reason=Reason("Terminating"), verb="TaintNode", ref=Ref("Node", "", "n"), patch={})
    with told.look():
        told.done(deed, "ok", node, None, node)
    context = (
        r'"controller":"node\.termination","controllerGroup":"","controllerKind":"Node",'
        rf'{NODE},"namespace":"","name":"n","reconcileID":"{ID}",'
    )
    taint = r'"taint\.Key":"karpenter\.sh/disrupted","taint\.Value":"","taint\.Effect":"NoSchedule"'
    end = r'"NodeClaim":\{"name":"c"\},' + taint
    held(the_line(stream, "tainted node"), "tainted node", context, end)


def test_interrupted(told: Telemetry, stream: io.StringIO) -> None:
    message = "initiating delete from interruption message"
    with told.look():
        for name, code in (("c", "SpotInterrupted"), ("d", "Empty")):
            deed = DeleteObject(reason=Reason(code), ref=Ref("NodeClaim", "", name), uid="u")
            told.done(deed, "ok", None, None, claim())
    context = rf'"controller":"interruption",{SINGLE}'
    end = rf'"messageKind":"spot_interrupted","NodeClaim":\{{"name":"c"\}},"action":"CordonAndDrain",{NODE}'
    held(the_line(stream, message), message, context, end)


def test_disrupting(told: Telemetry, stream: io.StringIO) -> None:
    command = Command(
        id="4d5c",
        reason="Underutilized",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        replacements=("r",),
        pods=("d/a", "d/b"),
        saving=125_000,
    )
    patch: dict[str, Any] = {"metadata": {"annotations": {"kerf.sh/command": text_of(command)}}}
    deed = PatchObject(reason=Reason("Underutilized"), verb="StartCommand", ref=Ref("NodeClaim", "", "c"), patch=patch)
    with told.look():
        told.done(deed, "ok", None, None, claim())
    words = r"Underutilized/4d5c: replace: nodepools=\[general\]: \[n\] -> \[1 replacement\] \(savings: \$0\.12\)"
    counts = r'"disrupted-node-count":1,"replacement-node-count":1,"pod-count":2,'
    kind = r'"capacity-type":"spot","instance-type":"m6a\.large"'
    node = rf'"disrupted-nodes":\[\{{{NODE},"NodeClaim":\{{"name":"c"\}},{kind}\}}\],'
    end = r'"replacement-nodes":\[\{"NodeClaim":\{"name":"r"\}\}\],"why":"[^"]*"'
    context = rf'"controller":"disruption",{SINGLE}"command":"{words}","decision":"replace",'
    held(the_line(stream, "disrupting node(s)"), "disrupting node(s)", context, counts, node, end)


def test_a_duration_is_a_string(stream: io.StringIO) -> None:
    make_logger("info", stream).info("x", duration=timedelta(seconds=1.5))
    assert json.loads(stream.getvalue())["duration"] == "1.5s"
