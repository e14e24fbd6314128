"""`kerf migrate check`: a sound cluster passes, and each thing that would change is told of."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from kerf.cli.app import app
from kerf.cli.migration.migrate_settings import TRUSTED
from tests.adoption import sample
from tests.unit.charts.values_table import defaults

from .migrations import ENVIRONMENT, Manifest, account, karpenter, lines, one


@pytest.fixture
def objects() -> list[Manifest]:
    """A sound cluster."""
    return copy.deepcopy([*sample.manifests(), karpenter(), account(**{"eks.amazonaws.com/role-arn": "arn:role"})])


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., Any]:
    """The command with these objects as a file."""

    def run(objects: Sequence[Manifest], *arguments: str) -> Any:
        path = tmp_path / "before.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return CliRunner().invoke(app, ["migrate", "check", "-f", str(path), *arguments])

    return run


# --- from files -------------------------------------------------------------------------------------------------
def test_a_sound_cluster_passes(objects: list[Manifest], check: Callable[..., Any]) -> None:
    done = check(objects)
    assert done.exit_code == 0, done.output
    assert lines(done.output, "WRONG") == []
    assert lines(done.output, "ok", "Deployment kube-system/karpenter", "controller:1.14.1", "2 replicas")
    assert len(lines(done.output, "is hashed as v5", "Kerf writes v6")) == 3
    assert lines(done.output, "ok", "no node has drifted")
    assert lines(done.output, "note", "AWS", "not checked")
    assert lines(done.output, "NodePools that consolidate", "web")
    assert not lines(done.output, "NodePools that consolidate", "batch")
    assert lines(done.output, "has the role arn:role")
    assert done.output.endswith("to know\n")


def test_the_same_for_programs(objects: list[Manifest], check: Callable[..., Any]) -> None:
    done = check(objects, "-o", "json")
    answer = json.loads(done.output)
    assert answer["version"] == 1
    assert answer["wrong"] == 0
    assert list(answer["sections"]) == ["controller", "objects", "nodes"]
    found = [row for rows in answer["sections"].values() for row in rows]
    assert all(row.keys() == {"what", "how", "seen", "fix"} for row in found)
    assert {row["how"] for row in found} == {"ok", "doubtful"}
    assert answer["doubtful"] == sum(row["how"] == "doubtful" for row in found)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"FEATURE_GATES": "NodeRepairs=true"}, ("WRONG", "FEATURE_GATES", "no gate is named 'NodeRepairs'")),
        ({"BATCH_MAX_DURATION": "10"}, ("WRONG", "BATCH_MAX_DURATION", "'10'")),
        ({"RESERVED_ENIS": "-1"}, ("WRONG", "RESERVED_ENIS")),
        ({"DISABLE_LEADER_ELECTION": "true"}, ("WRONG", "without leader election")),
        (
            {"LEADER_ELECTION_NAMESPACE": "ops"},
            ("note", "ops/karpenter-leader-election", "is not in a namespace that Kerf checks"),
        ),
        ({"LEADER_ELECTION_NAME": "own"}, ("note", "kube-system/own", "is not in a namespace that Kerf checks")),
        ({"GOMEMLIMIT": "900MiB"}, ("note", "GOMEMLIMIT")),
        ({"ASSUME_ROLE_ARN": "arn:old"}, ("note", "ASSUME_ROLE_ARN", "has no such setting")),
        ({"MEMORY_LIMIT": "1073741824"}, ("note", "MEMORY_LIMIT", "has no effect")),
        ({"AMI_REFRESH_INTERVAL": ""}, ("note", "AMI_REFRESH_INTERVAL", "1m by default, 15m with Kerf")),
    ],
)
def test_settings_that_kerf_has_otherwise(
    objects: list[Manifest], check: Callable[..., Any], environment: Mapping[str, str], told: tuple[str, ...]
) -> None:
    objects[objects.index(one(objects, "Deployment"))] = karpenter({**ENVIRONMENT, **environment})
    done = check(objects)
    assert lines(done.output, *told), done.output
    assert done.exit_code == int(told[0] == "WRONG")


@pytest.mark.parametrize(
    ("namespace", "account", "trusted"),
    [
        ("kube-system", "karpenter", True),
        ("karpenter", "karpenter", True),
        ("kube-system", "own", False),
        ("ops", "", False),
    ],
)
def test_an_account_that_the_webhook_does_not_trust(
    objects: list[Manifest], check: Callable[..., Any], namespace: str, account: str, trusted: bool
) -> None:
    controller = one(objects, "Deployment")
    controller["metadata"]["namespace"] = namespace
    controller["spec"]["template"]["spec"]["serviceAccountName"] = account
    done = check(objects)
    text = " ".join(done.output.split())
    user = f"system:serviceaccount:{namespace}:{account or 'default'}"
    assert (f"does not trust {user}" in text) is not trusted
    assert (f"add {user} to webhook.trustedAccounts" in text) is not trusted
    assert done.exit_code == 0


def test_the_chart_trusts_the_accounts_that_the_check_takes_for_trusted() -> None:
    assert defaults()["webhook"]["trustedAccounts"] == list(TRUSTED)


def test_what_is_the_same_is_not_told_of(objects: list[Manifest], check: Callable[..., Any]) -> None:
    done = check(objects)
    for name in (
        "KUBERNETES_MIN_VERSION",
        "KARPENTER_SERVICE",
        "AWS_REGION",
        "INTERRUPTION_QUEUE",
        "FEATURE_GATES",
        "SYSTEM_NAMESPACE",
    ):
        assert not lines(done.output, name)


@pytest.mark.parametrize(
    ("container", "told"),
    [
        ({"args": ["--leader-elect=true"]}, ("WRONG", "--leader-elect", "no such flag")),
        ({"args": ["--batch-max-duration=ten"]}, ("WRONG", "--batch-max-duration", "'ten'")),
        ({"args": ["-batch-max-duration", "ten"]}, ("WRONG", "--batch-max-duration", "'ten'")),
        ({"envFrom": [{"configMapRef": {"name": "settings"}}]}, ("note", "configMapRef", "was not read")),
        ({"image": "mirror.example.com/karpenter/controller:v0.37.0"}, ("WRONG", "change to Karpenter 1.0")),
    ],
)
def test_flags_sources_and_versions(
    objects: list[Manifest], check: Callable[..., Any], container: Mapping[str, Any], told: tuple[str, ...]
) -> None:
    objects[objects.index(one(objects, "Deployment"))] = karpenter(**container)
    done = check(objects)
    text = " ".join(done.output.split())
    assert all(word in text for word in told), done.output
    assert done.exit_code == int(told[0] == "WRONG")


def test_a_variable_out_of_an_object(objects: list[Manifest], check: Callable[..., Any]) -> None:
    reference = {"name": "INTERRUPTION_QUEUE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "queue"}}}
    one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"].append(reference)
    assert lines(check(objects).output, "note", "INTERRUPTION_QUEUE", "was not read")


def test_without_a_deployment_its_settings_are_not_known(objects: list[Manifest], check: Callable[..., Any]) -> None:
    done = check([o for o in objects if o["kind"] not in ("Deployment", "ServiceAccount")])
    assert lines(done.output, "note", "no Deployment of Karpenter is there")
    assert done.exit_code == 0


def test_an_object_that_does_not_pass(objects: list[Manifest], check: Callable[..., Any]) -> None:
    one(objects, "NodePool", "batch")["spec"]["disruption"]["budgets"] = [{"nodes": "10 nodes"}]
    done = check(objects)
    assert done.exit_code == 1
    assert lines(done.output, "WRONG", "NodePool batch", "spec.disruption.budgets[0].nodes")
    assert lines(done.output, "kerf explain KERF-")


def test_a_dump_without_nodepools_or_their_ec2nodeclasses_is_doubtful(
    objects: list[Manifest], check: Callable[..., Any]
) -> None:
    empty = check([])
    assert lines(empty.output, "note", "NodePools: there is none: nothing is checked")
    assert "kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes -o yaml" in empty.output
    classless = check([each for each in objects if each["kind"] != "EC2NodeClass"])
    pools = [each for each in objects if each["kind"] == "NodePool"]
    assert len(lines(classless.output, "note", "its EC2NodeClass", "does not exist")) == len(pools)
    assert not lines(check(objects).output, "does not exist")


def test_nodes_that_would_drift(objects: list[Manifest], check: Callable[..., Any]) -> None:
    """The template was changed when no controller looked, so that no claim is marked yet."""
    one(objects, "NodePool", "web")["metadata"]["annotations"]["karpenter.sh/nodepool-hash"] = "1"
    done = check(objects)
    assert done.exit_code == 1
    (line,) = lines(done.output, "WRONG", "Drifted by NodePoolDrifted")
    assert "web-00000, web-00001, web-00002, web-00003, web-00004 and 5 more" in line


def test_drift_that_karpenter_has_seen_is_no_news(objects: list[Manifest], check: Callable[..., Any]) -> None:
    claim = one(objects, "NodeClaim", "web-00003")
    told = {"type": "Drifted", "status": "True", "reason": "AMIDrift", "message": ""}
    claim["status"]["conditions"].append({**told, "lastTransitionTime": "2026-11-20T12:34:25Z"})
    done = check(objects)
    assert done.exit_code == 0
    assert lines(done.output, "note", "Drifted by AMIDrift", "web-00003")


def test_what_is_in_the_middle_of_something(objects: list[Manifest], check: Callable[..., Any]) -> None:
    one(objects, "NodeClaim", "web-00001")["metadata"]["deletionTimestamp"] = "2026-11-20T12:34:25Z"
    joining = one(objects, "NodeClaim", "web-00002")["status"]["conditions"]
    joining[:] = [row for row in joining if row["type"] == "Launched"]
    node = sample.machine("web", 3).node
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    one(objects, "Node", node)["spec"]["taints"] = [taint]
    done = check(objects)
    assert lines(done.output, "note", "on their way out", "web-00001")
    assert lines(done.output, "note", "without a node yet", "web-00002")
    assert lines(done.output, "note", "about to disrupt", node)


def test_lives_that_are_nearly_over(objects: list[Manifest], check: Callable[..., Any]) -> None:
    """Karpenter ends them at 720 hours; Kerf as well, and paces those that are older when it begins to lead."""
    claims = [o for o in objects if o["kind"] == "NodeClaim"]
    ages = {"past": timedelta(hours=721), "soon": timedelta(hours=700), "later": timedelta(hours=660)}
    for number, claim in enumerate(claims):
        age = list(ages.values())[min(number, 2)]
        claim["metadata"]["creationTimestamp"] = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    first, second = (claim["metadata"]["name"] for claim in claims[:2])
    found = check(objects).output
    assert lines(found, "note", "Expired", first, "within the budgets", "24 hours after Kerf began to lead")
    assert lines(found, "note", "Expire within 24 hours", second, "independent of budgets")
    within = check(objects, "--expire-within-budgets").output
    assert lines(within, "note", "Expire within 24 hours", second, "within the budgets")
    assert "independent of budgets" not in within


def test_a_life_that_cannot_be_read_hides_no_other(objects: list[Manifest], check: Callable[..., Any]) -> None:
    """The CRD accepts it; no client in Go can read it."""
    first, second = [one for one in objects if one["kind"] == "NodeClaim"][:2]
    first["spec"]["expireAfter"] = "99999999h"
    second["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    found = check(objects).output
    assert lines(found, "note", first["metadata"]["name"], "longer than 2562047h", "does not expire")
    assert lines(found, "note", "Expired", second["metadata"]["name"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["migrate", "now"], "no such command; the only one is kerf migrate check"),
        (["migrate", "check", "-f", "nothing.yaml"], "nothing.yaml: no such file"),
        (["migrate", "check", "-f", ".", "-o", "xml"], "'xml' is neither text nor json"),
    ],
)
def test_a_command_that_makes_no_sense(arguments: list[str], told: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("kind: [\n")
    done = CliRunner().invoke(app, ["migrate", "check", "-f", str(broken)])
    assert done.exit_code == 2
    assert "broken.yaml" in done.output


def test_a_setting_that_makes_no_sense(objects: list[Manifest], check: Callable[..., Any]) -> None:
    done = check(objects, "--batch-max-duration", "ten")
    assert done.exit_code == 2
    assert "--batch-max-duration" in done.output


# --- other controllers ------------------------------------------------------------------------------------------
def test_pools_of_other_controllers_are_left_alone(objects: list[Manifest], check: Callable[..., Any]) -> None:
    auto = copy.deepcopy(one(objects, "NodePool"))
    auto["metadata"] = {"name": "auto", "annotations": {"karpenter.sh/nodepool-hash-version": "v1"}}
    auto["spec"]["template"]["spec"]["nodeClassRef"] = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "x"}
    auto["spec"]["disruption"] = {"budgets": [{"nodes": "1", "schedule": "never", "duration": "1h"}]}
    done = check([*objects, auto])
    assert done.exit_code == 0, done.output
    assert lines(done.output, "ok", "NodePool auto", "is another controller's: Kerf leaves it alone")
    assert not lines(done.output, "NodePool auto", "hash")


# --- gates ------------------------------------------------------------------------------------------------------
ALL_BUT_ONE: Final = "NodeRepair=false,SpotToSpotConsolidation=false"


@pytest.mark.parametrize(
    ("release", "gates", "arguments", "reported"),
    [
        ("1.0.8", "SpotToSpotConsolidation=false", (), True),
        ("1.3.3", f"ReservedCapacity=false,{ALL_BUT_ONE}", (), True),
        ("1.7.1", f"ReservedCapacity=false,{ALL_BUT_ONE}", (), True),
        ("v1.5.5", "", (), True),
        ("1.5.5", f"ReservedCapacity=true,{ALL_BUT_ONE}", (), False),
        ("1.7.1", "", (), False),
        ("1.8.0", f"ReservedCapacity=false,{ALL_BUT_ONE}", (), False),
        ("1.14.1", ALL_BUT_ONE, (), False),
        ("1.5.5", "ReservedCapacity=true", ("--feature-gates=ReservedCapacity=false",), True),
        ("1.5.5", "", ("--feature-gates=ReservedCapacity=true",), False),
        ("1.5.5", "", ("--feature-gates", "ReservedCapacity=true", "--batch-max-duration", "10s"), False),
        ("latest", "ReservedCapacity=false", (), True),
        ("latest", "ReservedCapacity=true", (), False),
    ],
)
def test_a_gate_that_an_older_karpenter_closes_by_default_is_reported(
    objects: list[Manifest],
    check: Callable[..., Any],
    release: str,
    gates: str,
    arguments: Sequence[str],
    reported: bool,
) -> None:
    image = f"public.ecr.aws/karpenter/controller:{release}"
    environment = {**ENVIRONMENT, "FEATURE_GATES": gates}
    rest = [each for each in objects if each["kind"] != "Deployment"]
    done = check([*rest, karpenter(environment, image=image, args=list(arguments))])
    assert done.exit_code == 0, done.output
    assert len(lines(done.output, "note", "gate ReservedCapacity")) == reported
    assert ("settings.featureGates.reservedCapacity=false" in " ".join(done.output.split())) == reported
