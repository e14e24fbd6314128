"""`kerf events`: the records of one object, newest first, and the answers where something is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from kerf.cli.events import page, reading
from kerf.cli.events.reading import Found
from kerf.cli.events.records import Subject
from kerf.cli.verbs import events as verb
from kerf.model.instants import rfc3339
from kerf.model.kinds import Kind
from kerf.ports import AlreadyGone, Forbidden, Listing
from kerf_api.v1.meta import decode

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODE, CLAIM, POOL = (
    Subject("Node", "", "ip-1"),
    Subject("NodeClaim", "", "general-0a1b2c3d"),
    Subject("NodePool", "", "general"),
)


def ago(minutes: float) -> str:
    return rfc3339(NOW - timedelta(minutes=minutes))


def event(about: str, reason: str, message: str, minutes: float, **more: Any) -> dict[str, Any]:
    kind, *space, name = about.split("/")
    ref = {"kind": kind, "namespace": "".join(space), "name": name}
    times = {"firstTimestamp": ago(minutes), "lastTimestamp": ago(minutes), "count": 1}
    return {"involvedObject": ref, "type": "Normal", "reason": reason, "message": message, **times, **more}


def claim(name: str = CLAIM.name, pool: str = "general", node: str = "ip-1", minutes: float = 50) -> dict[str, Any]:
    condition = {
        "type": "Registered",
        "status": "Unknown",
        "reason": "NodeNotFound",
        "message": "no Node",
        "lastTransitionTime": ago(minutes),
    }
    meta = {"name": name, "labels": {"karpenter.sh/nodepool": pool}}
    status = {"nodeName": node, "providerID": "aws:///eu-west-1a/i-0abc", "conditions": [condition]}
    spec = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}
    return {"metadata": meta, "spec": spec, "status": status}


EVENTS = [
    event("Pod/team/web", "Nominated", "Pod should schedule on: nodeclaim/general-0a1b2c3d, node/ip-1", 40),
    event("Pod/team/web", "Evicted", "Evicted pod: Underutilized: node ip-1 is drained", 5),
    event("Pod/team/web", "Evicted", "Evicted pod: Underutilized: node ip-1 is drained", 3),
    event("Pod/team/other", "Evicted", "Evicted pod: Drifted: node ip-1-2.internal is drained", 4),
    event("Node/ip-1", "DisruptionBlocked", "budget", 20),
    event("NodeClaim/general-0a1b2c3d", "DisruptionTerminating", "Underutilized", 6),
    event("NodePool/general", "NodeMismatch", "less memory", 30, type="Warning"),
]


class Server:
    """An API server: its lists by the end of a path, objects that it has, and parts of paths that it forbids."""

    def __init__(self, *forbidden: str, has: Sequence[str] = (), **lists: Sequence[Any]) -> None:
        self.forbidden, self.has, self.lists, self.asked = forbidden, has, lists, list[str]()

    def request(self, method: str, path: str) -> Any:
        rows = self._rows(path)
        if path.rpartition("/")[2].partition("?")[0] not in ("version", "events") and path not in self.has:
            raise AlreadyGone(path)
        return {"items": rows}

    def list(self, kind: Kind, *, field_selector: str = "") -> Listing:
        return Listing(tuple(decode(kind.type, row) for row in self._rows(kind.path())), "")

    def _rows(self, path: str) -> Sequence[Any]:
        self.asked.append(path)
        if any(part in path for part in self.forbidden):
            raise Forbidden(path)
        return self.lists.get(path.partition("?")[0].rpartition("/")[2], [])


FULL: dict[str, Any] = {"events": EVENTS, "nodeclaims": [claim()]}


def look(server: Server, subject: Subject, minutes: float | None = None) -> Found:
    return reading.look(server, subject, reading.ago(NOW, None if minutes is None else timedelta(minutes=minutes)))


def reasons(found: Found) -> list[str]:
    return [f"{one.ref.kind} {one.reason}" for one in found.rows]


@pytest.mark.parametrize("name", ["ip-1", "i-0abc", "general-0a1b2c3d"])
def test_a_node_includes_its_claim_and_the_pods_that_were_evicted_from_it(name: str) -> None:
    found = look(Server(**FULL), Subject("Node", "", name))
    assert reasons(found) == [
        "Pod Evicted",
        "NodeClaim DisruptionTerminating",
        "Node DisruptionBlocked",
        "Pod Nominated",
        "NodeClaim Registered=Unknown",
    ]


def test_a_node_that_is_gone_keeps_what_nominations_say_of_its_claim() -> None:
    found = look(Server(events=EVENTS), NODE)
    assert "NodeClaim DisruptionTerminating" in reasons(found)
    assert reasons(look(Server(events=EVENTS), CLAIM)) == reasons(found)


def test_a_nodepool_includes_its_claims_and_their_nodes_and_no_other_pool() -> None:
    others = [
        event("NodeClaim/general-gpu-0a1b2c3d", "Other", "", 1),
        event("NodeClaim/general-ffffffff", "Gone", "", 2),
    ]
    mine = reasons(look(Server(events=[*EVENTS, *others], nodeclaims=[claim()]), POOL))
    assert mine == [
        "NodeClaim Gone",
        "NodeClaim DisruptionTerminating",
        "Node DisruptionBlocked",
        "NodePool NodeMismatch",
        "NodeClaim Registered=Unknown",
    ]


def test_equal_events_are_one_line_with_their_number_and_first_time() -> None:
    (evicted, _) = look(Server(**FULL), Subject("Pod", "team", "web")).rows
    assert (evicted.count, rfc3339(evicted.at), rfc3339(evicted.since)) == (2, ago(3), ago(5))


def test_a_series_of_newer_events_counts_with_its_last_time() -> None:
    one = event("NodePool/a", "R", "m", 9, eventTime=ago(9), series={"count": 7, "lastObservedTime": ago(1)})
    (row,) = look(Server(events=[one | {"lastTimestamp": None, "firstTimestamp": None}]), Subject()).rows
    assert (row.count, rfc3339(row.at)) == (7, ago(1))


def test_the_time_bounds_events_and_conditions() -> None:
    assert reasons(look(Server(**FULL), NODE, 10)) == ["Pod Evicted", "NodeClaim DisruptionTerminating"]


def test_without_a_name_all_of_a_kind_or_of_a_namespace_or_all() -> None:
    assert len(look(Server(**FULL), Subject()).rows) == 7
    assert {one.ref.kind for one in look(Server(**FULL), Subject("Node")).rows} == {"Node"}
    server = Server(**FULL)
    look(server, Subject("", "team"))
    assert "/api/v1/namespaces/team/events?fieldSelector=source%3Dkarpenter&limit=500" in server.asked


def test_a_missing_permission_is_named_and_costs_no_more_than_its_part() -> None:
    found = look(Server("nodeclaims", "/api/v1/events", **FULL), NODE)
    assert found.not_checked == [
        "events: needs permission to list events in all namespaces; those of namespace default are listed",
        "NodeClaims: needs permission to list nodeclaims.karpenter.sh",
    ]
    assert found.rows
    text = page.text(found, 0, NOW)
    assert text.endswith("not checked: NodeClaims: needs permission to list nodeclaims.karpenter.sh\n")
    assert not look(Server("event", "node", "ec2", **FULL), NODE).answered


def test_the_page_has_a_line_for_each_and_says_how_many_older_ones_there_are() -> None:
    lines = page.text(look(Server(**FULL), NODE), 2, NOW).splitlines()
    assert lines == [
        "AGE  OBJECT                      REASON                 COUNT  MESSAGE",
        "3m   pod/team/web                Evicted                2      "
        "Evicted pod: Underutilized: node ip-1 is drained",
        "6m   nodeclaim/general-0a1b2c3d  DisruptionTerminating  1      Underutilized",
        "… 3 older: --limit 0 prints all",
    ]
    hostile = event("Pod/team/web", "Evicted", "a\n\x1b[31mb", 1)
    assert "a \\x1b[31mb" in page.text(look(Server(events=[hostile]), Subject()), 0, NOW)


def test_json_has_the_same_and_counts_the_rest() -> None:
    found = json.loads(page.as_json(look(Server(**FULL), NODE), NODE, 1))
    assert found == {
        "version": 1,
        "subject": "node/ip-1",
        "events": [
            {
                "at": ago(3),
                "since": ago(5),
                "object": "pod/team/web",
                "source": "event",
                "type": "Normal",
                "reason": "Evicted",
                "message": "Evicted pod: Underutilized: node ip-1 is drained",
                "count": 2,
            }
        ],
        "left": 4,
        "notChecked": [],
    }


APP = typer.Typer()
APP.command("events", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(verb.events)


def run(monkeypatch: pytest.MonkeyPatch, server: Server, *words: str) -> Any:
    monkeypatch.setattr(verb, "_kube", lambda *_: server)
    return CliRunner().invoke(APP, [*words])


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        ((), Subject()),
        (("node/ip-1",), NODE),
        (("no", "ip-1"), NODE),
        (("nodepools.karpenter.sh", "general"), POOL),
        (("pod", "web"), Subject("Pod", "default", "web")),
        (("pod", "web", "-n", "team"), Subject("Pod", "team", "web")),
        (("pod/team/web",), Subject("Pod", "team", "web")),
        (("pods",), Subject("Pod")),
        (("-n", "team"), Subject("", "team")),
    ],
)
def test_the_ways_to_name_an_object(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], subject: Subject) -> None:
    asked: list[Subject] = []

    def look(_: Any, about: Subject, __: Any) -> Found:
        asked.append(about)
        return Found()

    monkeypatch.setattr(reading, "look", look)
    assert run(monkeypatch, Server(), *words).exit_code == 0
    assert asked == [subject]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nod/x",), "'nod' is no kind that Kerf writes events on; did you mean node?"),
        (("node", "x", "-n", "team"), "a Node has no namespace: kerf events node NAME"),
        (("pod", "a/b", "-n", "team"), "a/b is not in namespace team"),
        (("pod", "/b"), "kerf events pod NAMESPACE/NAME"),
        (("node", "x", "--sinse", "1h"), "there is no option --sinse; did you mean --since?"),
        (("--since", "yesterday"), "--since: 'yesterday' is no duration; write hours and minutes, such as 24h"),
        (("--limit", "-1"), "--limit: -1 is negative; 0 prints all"),
        (("-o", "yaml"), "--output: 'yaml' is neither text nor json"),
        (("node", "x", "y"), "one object at a time"),
    ],
)
def test_a_command_that_is_wrong_ends_with_2_and_the_fix(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    done = run(monkeypatch, Server(), *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_object_that_is_not_there_ends_with_1_and_the_name_that_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, Server(**FULL), "nodepool", "generel")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no nodepool/generel, and no event of it; did you mean general?" in done.stderr


def test_an_object_without_events_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(has=["/api/v1/nodes/quiet"], **FULL)
    done = run(monkeypatch, server, "node", "quiet", "--since", "1h")
    assert done.exit_code == 0
    assert "no event and no condition of node/quiet in that time" in done.stderr


def test_json_without_events_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, Server(), "-o", "json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["events"] == []


def test_nothing_that_can_be_read_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, Server("event", "node", "ec2"), "node", "ip-1")
    assert done.exit_code == 1
    assert "not checked: events: needs permission to list events in all namespaces" in done.stdout
