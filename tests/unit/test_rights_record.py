"""What is made of the records of control planes: each kind of difference is found, and nothing else is one."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import record, rights
from tests.cluster.grants import Grant, as_rule, lost, of_account, of_rules
from tests.cluster.rights import CONTROLLER, EVERYBODY, LAG, PROVOKED, Comparison
from tests.sources import ROOT

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GIVEN = frozenset(
    {Grant("", "pods", "list"), Grant("", "pods/eviction", "create"), Grant("", "secrets", "get", "mine", "kerf")}
)
TEST = "tests/cluster/test_x.py::test_y"


def event(
    asked: Grant, *, user: str = CONTROLLER, decision: str = "allow", code: int = 200, seconds: float = 0.0
) -> dict[str, Any]:
    """A line of an audit log, of level Metadata."""
    resource, _, sub = asked.resource.partition("/")
    ref = {"resource": resource, "subresource": sub, "apiGroup": asked.group, "name": asked.name}
    return {
        "verb": asked.verb,
        "user": {"username": user},
        "objectRef": {**{key: value for key, value in ref.items() if value}, "namespace": asked.namespace},
        "requestReceivedTimestamp": f"{(NOON + timedelta(seconds=seconds)).isoformat().removesuffix('+00:00')}.000001Z",
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
    }


def compared(folder: Path, *events: dict[str, Any], marks: tuple[dict[str, Any], ...] = ()) -> list[str]:
    """The differences, `GIVEN` being given and used but for what these events say."""
    usual = [event(Grant("", "pods", "list")), event(Grant("", "pods/eviction", "create", "a", "default"))]
    usual.append(event(Grant("", "secrets", "get", "mine", "kerf")))
    return differences(folder, *usual, *events, marks=marks)


def differences(folder: Path, *events: dict[str, Any], marks: tuple[dict[str, Any], ...] = ()) -> list[str]:
    audit = folder / f"plane{record.AUDIT}"
    audit.write_text("".join(f"{json.dumps(one)}\n" for one in events) + '{"half')
    (folder / f"plane{record.MARKS}").write_text("".join(f"{json.dumps(one)}\n" for one in marks))
    found = Comparison(GIVEN, {TEST: "why"}, ())
    found.take(audit)
    return found.differences()


def mark(*missing: Grant, test: str = TEST) -> dict[str, Any]:
    """With nothing in particular: the API server started."""
    until = NOON + timedelta(seconds=60)
    rules = [as_rule(one) for one in missing] or None
    return {"test": test, "since": NOON.isoformat(), "until": until.isoformat(), "missing": rules}


def test_when_all_is_asked_for_and_all_is_given_there_is_no_difference(tmp_path: Path) -> None:
    assert compared(tmp_path) == []


def test_what_is_refused_is_a_difference_and_told_once(tmp_path: Path) -> None:
    refused = event(Grant("", "nodes", "delete", "n"), decision="forbid", code=403)
    (told,) = compared(tmp_path, refused, refused)
    assert told.startswith("refused: delete nodes n")
    assert told.endswith("(2 times)")


def test_what_admission_forbids_is_a_difference_too(tmp_path: Path) -> None:
    (told,) = compared(tmp_path, event(Grant("", "pods", "list"), code=403))
    assert told.startswith("refused: list pods")


def test_what_no_rule_of_the_chart_allows_is_a_difference_although_the_server_allowed_it(tmp_path: Path) -> None:
    (told,) = compared(tmp_path, event(Grant("", "secrets", "get", "other", "kerf")))
    assert told == "allowed by no rule of the chart: get secrets other in kerf by kerf:kerf (code 200)"


def test_whatever_the_webhook_asks_for_is_a_difference(tmp_path: Path) -> None:
    user = "system:serviceaccount:kerf:kerf-webhook"
    (told,) = compared(tmp_path, event(Grant("", "pods", "list"), user=user))
    assert "list pods in the whole cluster by kerf:kerf-webhook" in told


def test_what_was_turned_away_before_anybody_looked_at_rights_says_nothing(tmp_path: Path) -> None:
    busy = event(Grant("", "pods/eviction", "create", "a", "default"), code=429)
    del busy["annotations"]
    used = [event(Grant("", "pods", "list")), event(Grant("", "secrets", "get", "mine", "kerf"))]
    assert differences(tmp_path, *used, busy) == ["given, and never asked for: create pods/eviction"]


def test_of_a_part_of_the_tests_only_calls_are_judged(tmp_path: Path) -> None:
    """Rights that the other tests need are given, and not asked for."""
    wrong = event(Grant("", "secrets", "get", "other", "kerf"))
    audit = tmp_path / f"plane{record.AUDIT}"
    audit.write_text(json.dumps(wrong) + "\n")
    found = Comparison(GIVEN)
    found.take(audit)
    (told,) = found.differences(part=True)
    assert told == "allowed by no rule of the chart: get secrets other in kerf by kerf:kerf (code 200)"


def test_people_are_not_compared(tmp_path: Path) -> None:
    user = "system:serviceaccount:people:reader"
    assert compared(tmp_path, event(Grant("", "nodes", "delete", "n"), user=user, decision="forbid", code=403)) == []


def test_what_is_given_and_never_asked_for_is_a_difference(tmp_path: Path) -> None:
    used = [event(Grant("", "pods", "list")), event(Grant("", "secrets", "get", "mine", "kerf"))]
    assert differences(tmp_path, *used) == ["given, and never asked for: create pods/eviction"]


def test_a_rule_for_all_namespaces_is_not_needed_for_kerfs_own(tmp_path: Path) -> None:
    used = [event(Grant("", "pods", "list")), event(Grant("", "secrets", "get", "mine", "kerf"))]
    own = event(Grant("", "pods/eviction", "create", "a", "kerf"))
    assert differences(tmp_path, *used, own) == ["given, and never asked for: create pods/eviction"]


@pytest.mark.parametrize("seconds", [0.5, 60 + LAG.total_seconds() / 2])
def test_what_a_test_took_away_is_none_while_it_did(tmp_path: Path, seconds: float) -> None:
    evict = Grant("", "pods/eviction", "create", "a", "default")
    refused = event(evict, decision="forbid", code=403, seconds=seconds)
    assert compared(tmp_path, refused, marks=(mark(Grant("", "pods/eviction", "create")),)) == []
    (told,) = compared(tmp_path, refused, marks=(mark(Grant("", "pods", "list")),))
    assert told.startswith("refused: create pods/eviction a")


def test_before_and_after_it_is_one(tmp_path: Path) -> None:
    evict, taken = Grant("", "pods/eviction", "create", "a", "default"), Grant("", "pods/eviction", "create")
    for seconds in (-1.0, 61 + LAG.total_seconds()):
        refused = event(evict, decision="forbid", code=403, seconds=seconds)
        assert len(compared(tmp_path, refused, marks=(mark(taken),))) == 1


def test_while_the_api_server_starts_only_what_the_chart_does_not_give_is_one(tmp_path: Path) -> None:
    started = mark(test="tests/cluster/test_x.py::test_that_restarts")
    evict, other = Grant("", "pods/eviction", "create", "a", "default"), Grant("", "nodes", "delete", "n")
    refused = [event(asked, decision="forbid", code=403, seconds=1) for asked in (evict, other)]
    (told,) = compared(tmp_path, *refused, marks=(started,))
    assert told.startswith("refused: delete nodes n")


def test_a_test_that_takes_rights_away_has_to_be_in_the_list(tmp_path: Path) -> None:
    (told,) = compared(tmp_path, marks=(mark(Grant("", "pods", "list"), test="tests/cluster/test_x.py::test_z"),))
    assert told.endswith("tests/cluster/test_x.py::test_z")


def test_leave_for_finalizers_is_needed_when_without_it_admission_refuses_an_owner(tmp_path: Path) -> None:
    """The plugin asks the authorizer itself; that is no call of its own."""
    finalizers, claim = Grant("karpenter.sh", "nodepools/finalizers", "update"), Grant("", "pods", "list")
    (tmp_path / f"plane{record.AUDIT}").write_text(json.dumps(event(claim, code=403, seconds=1)) + "\n")
    (tmp_path / f"plane{record.MARKS}").write_text(json.dumps(mark(finalizers)) + "\n")
    found = Comparison(frozenset({finalizers}), {TEST: "why"}, ())
    found.take(tmp_path / f"plane{record.AUDIT}")
    assert found.differences() == []


def test_tests_that_are_listed_exist() -> None:
    for name in PROVOKED:
        path, _, test = name.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_what_everybody_may_has_to_be_used(tmp_path: Path) -> None:
    audit = tmp_path / f"plane{record.AUDIT}"
    reviews = [event(grant) for grant in EVERYBODY if grant.group]
    paths = [grant.resource for grant in EVERYBODY if not grant.group]
    read = [{**event(Grant("", "", "get")), "requestURI": f"{path}?timeout=32s"} for path in paths]
    for one in read:
        del one["objectRef"]
    audit.write_text("".join(f"{json.dumps(one)}\n" for one in reviews))
    found = Comparison(frozenset())
    found.take(audit)
    assert found.differences() == sorted(f"given, and never asked for: get {path}" for path in paths)
    audit.write_text("".join(f"{json.dumps(one)}\n" for one in read))
    found.take(audit)
    assert found.differences() == []
    assert {*EVERYBODY} == found.used


def test_an_empty_record_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_of_nothing = tmp_path / "empty"
    record_of_nothing.mkdir()
    assert rights.verdict(Comparison(frozenset()), record_of_nothing) == 1


# --- grants -------------------------------------------------------------------------------------------------------
def test_a_name_is_not_known_of_what_is_created_yet() -> None:
    named = Grant("", "secrets", "create", "mine")
    assert not named.allows(Grant("", "secrets", "create", "mine", "kerf"))
    assert Grant("", "pods/eviction", "create", "a").allows(Grant("", "pods/eviction", "create", "a", "default"))


def test_a_role_gives_nothing_in_other_namespaces_and_nothing_in_all() -> None:
    own = Grant("", "pods", "list", "", "kerf")
    assert own.allows(Grant("", "pods", "list", "", "kerf"))
    assert not own.allows(Grant("", "pods", "list", "", "default"))
    assert not own.allows(Grant("", "pods", "list"))


def test_wildcards_are_refused() -> None:
    with pytest.raises(ValueError, match="wildcard"):
        list(of_rules([{"apiGroups": ["*"], "resources": ["pods"], "verbs": ["list"]}]))


def test_only_what_is_bound_to_an_account_is_its_own() -> None:
    def role(kind: str, name: str, namespace: str, verb: str) -> list[dict[str, Any]]:
        where = {"namespace": namespace} if namespace else {}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]
        subject = {"kind": "ServiceAccount", "namespace": "kerf", "name": name}
        bound = {"roleRef": {"kind": kind, "name": verb}, "subjects": [subject]}
        return [
            {"kind": kind, "metadata": {"name": verb, **where}, "rules": rules},
            {"kind": f"{kind}Binding", "metadata": {"name": verb, **where}, **bound},
        ]

    objects = [*role("ClusterRole", "kerf", "", "list"), *role("Role", "kerf", "other", "get")]
    objects += role("ClusterRole", "somebody", "", "delete")
    assert of_account(objects, "kerf", "kerf") == {Grant("", "pods", "list"), Grant("", "pods", "get", "", "other")}


def test_what_was_lost_is_told_as_rules() -> None:
    before = [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]}]
    after = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, {**before[0], "resources": ["nodes"]}]
    assert lost(before, after) == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]


# --- where records are --------------------------------------------------------------------------------------------
def test_records_stay_where_a_run_wants_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(record.VARIABLE, "")
    plane = tmp_path / "kerf-cluster-abc"
    assert record.path_for(plane) == plane / "record.audit.jsonl"
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "old.audit.jsonl").touch()
    record.begin(tmp_path / "kept")
    assert record.path_for(plane) == tmp_path / "kept" / "test_rights_record.abc.audit.jsonl"
    assert list(record.records(tmp_path / "kept")) == []
    (tmp_path / "kept" / "new.audit.jsonl").touch()
    record.begin(tmp_path / "kept", anew=False)
    assert [path.name for path in record.records(tmp_path / "kept")] == ["new.audit.jsonl"]


def test_a_mark_is_read_as_it_was_made(tmp_path: Path) -> None:
    audit = tmp_path / f"plane{record.AUDIT}"
    since, missing = record.now(), [as_rule(Grant("", "pods", "list"))]
    record.mark(audit, since, missing)
    (found,) = record.marks(audit)
    assert found.test == "tests/unit/test_rights_record.py::test_a_mark_is_read_as_it_was_made"
    assert (found.since, found.missing) == (since, missing)
    assert since <= found.until <= record.now()
