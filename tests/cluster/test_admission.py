"""Does the real API server judge as the linter does? Every row of the linter's table is put to both.

The definitions are installed as they are shipped, without the webhook. Then each manifest is posted as a dry run with
strict field validation. What the linter refuses by shape or by a CEL rule the server must refuse too; what only the
controllers would refuse (rules numbered 100 and more) the bare server takes. Of what it takes, it must fill in the same
defaults. The report of agreement is printed (`-s` shows it).
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import config

from api import crds
from api.defaulting import default
from api.lint import validate
from tests.unit.api.manifests import BASES, changed
from tests.unit.api.table import ACCEPTED, REFUSED

from .control_plane import ControlPlane

pytestmark = pytest.mark.cluster

CRDS = Path(__file__).resolve().parents[2] / "manifests/crds"
STRICT = "dryRun=All&fieldValidation=Strict&fieldManager=test"
SERVED_SECONDS = 30.0
#: What the API server refuses by itself although no definition says so: an object without a name or with a wrong one,
#: and more replicas than the scale subresource can count.
_UNSTATED = ("KERF-META-101", "KERF-META-102", "KERF-NP-124")


@dataclass(frozen=True)
class Case:
    """A manifest, how a report calls it, and `old`, the object that it is to replace (None for a creation)."""

    kind: str
    label: str
    manifest: dict[str, Any]
    old: dict[str, Any] | None = None

    def expected(self) -> list[str]:
        """The linter's rules that the API server knows too and that this manifest breaks."""
        problems = validate(self.manifest, self.old)
        return [p.rule for p in problems if p.severity == "error" and structural(p.rule)]


@dataclass(frozen=True)
class Answer:
    """The server's: an HTTP status and the object as it would be stored, or the refusal."""

    status: int
    body: dict[str, Any]

    @property
    def accepted(self) -> bool:
        return self.status in (200, 201)


def structural(rule: str) -> bool:
    """Whether a rule is stated in the definitions (or by the API server itself), not only by controllers."""
    number = re.fullmatch(r"KERF-[A-Z0-9]+-(\d+)", rule)
    return number is None or int(number[1]) < 100 or rule in _UNSTATED


class Server:
    """The API server over one kept connection, as administrator."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._client: Any = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self._client.close()

    def create(self, kind: str, manifest: dict[str, Any], query: str = STRICT) -> Answer:
        return self._ask("POST", f"{_path(kind)}?{query}", manifest)

    def replace(self, kind: str, name: str, manifest: dict[str, Any]) -> Answer:
        return self._ask("PUT", f"{_path(kind)}/{name}?{STRICT}", manifest)

    def serves(self, kind: str) -> bool:
        return self._ask("GET", _path(kind), None).accepted

    def judge(self, case: Case) -> Answer:
        """What it says to a creation, or to a change of an object that is made for the question."""
        if case.old is None:
            return self.create(case.kind, case.manifest)
        stored = self.create(case.kind, case.old, "fieldValidation=Strict")
        assert stored.accepted, stored.body
        meta = stored.body["metadata"]
        try:
            versioned = {**case.manifest["metadata"], "resourceVersion": meta["resourceVersion"]}
            return self.replace(case.kind, meta["name"], {**case.manifest, "metadata": versioned})
        finally:
            self._ask("DELETE", f"{_path(case.kind)}/{meta['name']}", None)

    def _ask(self, method: str, path: str, manifest: dict[str, Any] | None) -> Answer:
        answer = self._client.rest_client.pool_manager.request(
            method,
            self._client.configuration.host + path,
            body=json.dumps(manifest) if manifest is not None else None,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            timeout=10.0,
        )
        return Answer(answer.status, json.loads(answer.data) if answer.data[:1] == b"{" else {})


def _path(kind: str) -> str:
    place = "namespaces/default/" if crds.is_namespaced(kind) else ""
    return f"/apis/{crds.api_version(kind)}/{place}{crds.load(kind)['spec']['names']['plural']}"


# --- the cases --------------------------------------------------------------------------------------------------
def table() -> list[Case]:
    """Every value of every row, and the base manifests themselves."""
    rows = [
        Case(row.kind, f"{row.kind} {row.path}={value!r:.50}", changed(row.kind, row.path, value))
        for row in (*ACCEPTED, *REFUSED)
        for value in row.values
    ]
    return [*(Case(kind, f"{kind} as it is", manifest) for kind, manifest in BASES.items()), *rows]


def changes() -> list[Case]:
    """Changes of what may change and of what is fixed."""
    reference = "T.nodeClassRef"
    return [
        _change("NodePool", "spec.weight", 1, 2),
        _change("NodePool", f"{reference}.name", "default", "other"),
        _change("NodePool", f"{reference}.group", "karpenter.k8s.aws", "example.com"),
        _change("NodePool", f"{reference}.kind", "EC2NodeClass", "OtherClass"),
        _change("NodePool", "spec.replicas", None, 3),
        _change("NodePool", "spec.replicas", 3, None),
        _change("NodePool", "spec.replicas", 3, 4),
        _change("NodeClaim", "spec.terminationGracePeriod", "1h", "2h"),
        _change("NodeClaim", "spec.expireAfter", "720h", "720h"),
        _change("NodeClaim", "metadata.labels", {"a": "b"}, {"a": "c"}),
        _change("EC2NodeClass", "spec.role", "one", "two"),
        _change("EC2NodeClass", "spec.tags", {"a": "b"}, {"a": "c"}),
        _change("NodeOverlay", "spec.priceAdjustment", "-10%", "+0.5"),
        _change("NodeOverlay", "spec.capacity", {"x": 1}, {"y": 1}),
        _change("CapacityBuffer", "spec.scalableRef.name", "web", "shop"),
        _change("CapacityBuffer", "spec.percentage", 10, None),
    ]


def _change(kind: str, path: str, before: Any, after: Any) -> Case:
    return Case(
        kind, f"{kind} {path}: {before!r} to {after!r}", changed(kind, path, after), changed(kind, path, before)
    )


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[Server]:
    """The API server with the shipped definitions; they are taken away afterwards, for tests that install a chart."""
    control_plane.kubectl("create", "-f", str(CRDS))
    server = Server(control_plane)
    try:
        deadline = time.monotonic() + SERVED_SECONDS
        while not all(server.serves(kind) and server.create(kind, BASES[kind]).accepted for kind in crds.kinds()):
            assert time.monotonic() < deadline, "the definitions are not served"
            time.sleep(0.1)
        yield server
    finally:
        server.close()
        control_plane.kubectl("delete", "-f", str(CRDS), "--wait")


@pytest.fixture(scope="module")
def answers(server: Server) -> list[tuple[Case, list[str], Answer]]:
    """Each case with the linter's rules and the server's answer."""
    return [(case, case.expected(), server.judge(case)) for case in (*table(), *changes())]


Answers = list[tuple[Case, list[str], Answer]]


# --- the tests --------------------------------------------------------------------------------------------------
def test_the_server_and_the_linter_agree(answers: Answers) -> None:
    seen = Counter(
        ("refused" if rules else "accepted", answer.accepted is not bool(rules)) for _, rules, answer in answers
    )
    for verdict in ("accepted", "refused"):
        print(f"\n{verdict} by the linter: {seen[verdict, True]} agreed, {seen[verdict, False]} not", end="")
    differing = [
        f"{case.label}: linter {rules or 'accepts'}, server {answer.status} {answer.body.get('message', '')}"
        for case, rules, answer in answers
        if answer.accepted is bool(rules)
    ]
    print("", *differing, sep="\n")
    assert differing == []


def test_a_refusal_is_the_clients_fault_and_says_why(answers: Answers) -> None:
    refusals = [answer for _, rules, answer in answers if rules and not answer.accepted]
    assert {answer.status for answer in refusals} <= {400, 422}
    assert all(answer.body["message"] for answer in refusals)


def test_the_server_refuses_by_the_rule_that_the_linter_names(answers: Answers) -> None:
    """Where a single CEL rule is broken, its ID is in the server's own words."""
    missing = [
        f"{case.label}: {rules[0]} is not in {answer.body['message']!r}"
        for case, rules, answer in answers
        if len(rules) == 1 and "-SCHEMA-" not in rules[0] and rules[0] not in _UNSTATED and not answer.accepted
        if f"[{rules[0]}]" not in answer.body["message"]
    ]
    assert missing == []


def test_the_server_fills_in_the_same_defaults(answers: Answers) -> None:
    taken = [(case, answer) for case, _, answer in answers if answer.accepted]
    print(f"\ndefaults compared: {len(taken)}")
    differing = [
        f"{case.label}: {default(case.manifest).get('spec')} is stored as {answer.body.get('spec')}"
        for case, answer in taken
        if default(case.manifest).get("spec") != answer.body.get("spec")
    ]
    assert differing == []
    assert len(taken) > 100
