"""`kerf replay --with`: the difference that a change makes, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.cli.verbs import plan, replay
from kerf.cli.verbs.views import ui
from kerf.runtime.recording.ring import parts
from tests.unit.records.lives import Life, Manifest
from tests.worlds import deployment, node_class, node_pool

RECORD = "tests/unit/records/versions/1.record"
UNKNOWN = "its user data is assumed unchanged: a record does not keep the key of its digests"
LARGE = [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["15"]}]


def _pool(**spec: Any) -> dict[str, Any]:
    return node_pool("general", {"disruption": {"consolidateAfter": "0s"}, **spec})


def _large() -> dict[str, Any]:
    pool = _pool()
    pool["spec"]["template"]["spec"]["requirements"] = LARGE
    return pool


def _recorded(folder: Path, *manifests: Manifest) -> Path:
    life = Life(folder, manifests=manifests)
    life.live(3)
    life.recorder.close()
    assert not life.errors
    return folder


def _answer(record: Path, manifest: Manifest, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> dict[str, Any]:
    file = tmp_path / "changed.yaml"
    file.write_text(json.dumps(manifest))
    capsys.readouterr()
    assert replay.main([str(record), "--with", str(file), "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    web = deployment("web", {"replicas": 3})
    return _recorded(tmp_path_factory.mktemp("record"), node_class(), _pool(), web)


def test_the_same_objects_make_no_difference(record: Path, capsys: Any, tmp_path: Path) -> None:
    for manifest in (_pool(), node_class()):
        found = _answer(record, manifest, capsys, tmp_path)
        assert found["recorded"] == found["changed"]
        assert found["recorded"]["launches"]


@pytest.fixture(scope="module")
def with_user_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    web = deployment("web", {"replicas": 3})
    return _recorded(tmp_path_factory.mktemp("record"), _user_data(), _pool(), web)


def _user_data() -> dict[str, Any]:
    found = node_class()
    found["spec"]["userData"] = "#!/bin/bash\ntrue\n"
    return found


def test_digests_of_another_key_make_no_difference(
    with_user_data: Path, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of a record is random: that of the environment is another one, and would make each node drift."""
    monkeypatch.setenv("KERF_DIGEST_KEY", "another")
    file = tmp_path / "changed.yaml"
    file.write_text(json.dumps(_user_data()))
    assert replay.main([str(with_user_data), "--with", str(file), "-o", "json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["recorded"] == found["changed"]
    assert found["recorded"]["launches"]
    assert f"EC2NodeClass default: {UNKNOWN}" in told.err


def test_a_plan_of_a_record_uses_no_key_of_the_environment(
    with_user_data: Path, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERF_DIGEST_KEY", "another")
    file = tmp_path / "changed.yaml"
    file.write_text(json.dumps(_user_data()))
    assert plan.main([str(file), "--record", str(with_user_data), "--no-simulate", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["now"]["nodes"], found["planned"]["departures"]) == (1, [])
    assert [one for one in found["guesses"] if UNKNOWN in one] == [f"EC2NodeClass default: {UNKNOWN}"]
    origin, history = ui._origin([], [], ("", ""), str(with_user_data))
    planned = ui._planned(origin, history, [str(file)])
    planned.compute()
    assert planned.found is not None
    assert planned.found.planned.departures == ()
    assert f"EC2NodeClass default: {UNKNOWN}" in planned.found.guesses


def test_the_first_launch_is_that_of_a_world_with_the_change(record: Path, capsys: Any, tmp_path: Path) -> None:
    """The other world is a controller that has had the changed NodePool from the start."""
    found = _answer(record, _large(), capsys, tmp_path)
    web = deployment("web", {"replicas": 3})
    other = _answer(_recorded(tmp_path / "other", node_class(), _large(), web), _large(), capsys, tmp_path)
    assert found["changed"]["launches"] == other["recorded"]["launches"]
    assert found["changed"]["price"] > found["recorded"]["price"] > 0
    assert found["recorded"]["drifted"] == []


def test_nodes_that_a_changed_template_makes_drift_are_named(record: Path, capsys: Any, tmp_path: Path) -> None:
    changed = _pool()
    changed["spec"]["template"]["metadata"] = {"labels": {"team": "a"}}
    found = _answer(record, changed, capsys, tmp_path)
    assert [one["reason"] for one in found["changed"]["drifted"]] == ["NodePoolDrifted"]
    assert found["changed"]["drifted"][0]["nodeClaim"] == found["recorded"]["launches"][0]["nodeClaim"]
    assert found["recorded"]["drifted"] == []


def test_pods_that_a_change_refuses_are_named(record: Path, capsys: Any, tmp_path: Path) -> None:
    found = _answer(record, _pool(limits={"cpu": "0"}), capsys, tmp_path)
    assert (found["changed"]["launches"], found["recorded"]["refused"]) == ([], [])
    assert len(found["changed"]["refused"]) == 3


def test_the_text_has_both_sides_and_the_limits(record: Path, capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps(_large()))
    assert replay.main([str(record), "--with", str(tmp_path / "a.yaml")]) == 0
    text = capsys.readouterr().out
    assert "launched only with the change:" in text
    assert "launched only as recorded:" in text
    assert "the cluster of each decision is the recorded one" in text


@pytest.mark.parametrize(
    ("manifest", "more", "words"),
    [
        ({**_pool(), "metadata": {"name": "other"}}, [], "the record has no NodePool other"),
        (_pool(weight="x"), [], "NodePool general: "),
        ({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}, [], "only NodePools"),
        ({"kind": "Pod", "metadata": {"name": "a"}}, [], "no object of a kind that changes a plan"),
        (_pool(), ["--list"], "--with and --at or --list exclude each other"),
        (_pool(), ["-o", "yaml"], "it is neither text nor json"),
        (_pool(), ["--since", "2030-01-01"], "there is no decision between these times"),
    ],
)
def test_a_mistake_ends_with_2(manifest: Manifest, more: list[str], words: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(json.dumps(manifest))
    assert replay.main([RECORD, "--with", str(file), *more]) == 2
    assert words in capsys.readouterr().err


def test_a_damaged_record_ends_with_2(record: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "1.record").write_bytes(parts(record)[0].read_bytes())
    (tmp_path / "2.record").write_bytes(b"x")
    (tmp_path / "a.yaml").write_text(json.dumps(_pool()))
    assert replay.main([str(tmp_path), "--with", str(tmp_path / "a.yaml")]) == 2
    assert "2.record: " in capsys.readouterr().err
