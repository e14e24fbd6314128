"""`kerf migrate check`: a sound cluster passes, and each thing that would change is told of."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from reconciler.cli import migrate_page
from reconciler.cli.app import app
from reconciler.cli.migrate_settings import TRUSTED
from reconciler.model import kinds
from reconciler.model.indexes import InstanceIndex
from reconciler.model.settings import Settings
from reconciler.model.snapshot import Snapshot
from reconciler.ports import Unavailable
from reconciler.runtime.looking import look
from reconciler.runtime.preflight.findings import Finding
from reconciler.runtime.settings import Options
from tests.adoption import sample
from tests.adoption.world import Adopted
from tests.unit.charts.values_table import defaults

Manifest = dict[str, Any]

ENVIRONMENT: Final = {
    "KUBERNETES_MIN_VERSION": "1.19.0-0",
    "KARPENTER_SERVICE": "karpenter",
    "CLUSTER_NAME": "adoption",
    "CLUSTER_ENDPOINT": "https://adoption.example.internal",
    "INTERRUPTION_QUEUE": "adoption",
    "FEATURE_GATES": "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,StaticCapacity=false",
    "BATCH_MAX_DURATION": "10s",
    "MEMORY_LIMIT": "1073741824",
    "AMI_REFRESH_INTERVAL": "1m",
    "SUBNET_REFRESH_INTERVAL": "1m",
    "AWS_REGION": "us-west-2",
}


def karpenter(environment: Mapping[str, str] = ENVIRONMENT, **container: Any) -> Manifest:
    """Its Deployment, as the chart of 1.14.1 has it."""
    rows: list[Manifest] = [{"name": name, "value": text} for name, text in environment.items()]
    rows.append({"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}})
    image = "public.ecr.aws/karpenter/controller:1.14.1@sha256:0123"
    own = {"name": "controller", "image": image, "env": rows, **container}
    pod = {"serviceAccountName": "karpenter", "containers": [own]}
    metadata = {"name": "karpenter", "namespace": "kube-system"}
    spec = {"replicas": 2, "template": {"spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def account(**annotations: str) -> Manifest:
    metadata = {"name": "karpenter", "namespace": "kube-system", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


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


def one(objects: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    return next(o for o in objects if o["kind"] == kind and name in ("", o["metadata"]["name"]))


def lines(text: str, *words: str) -> list[str]:
    """The lines that hold all of these words."""
    return [line for line in text.splitlines() if all(word in line for word in words)]


# --- from files -------------------------------------------------------------------------------------------------
def test_a_sound_cluster_passes(objects: list[Manifest], check: Callable[..., Any]) -> None:
    done = check(objects)
    assert done.exit_code == 0, done.output
    assert lines(done.output, "WRONG") == []
    assert lines(done.output, "ok", "Deployment kube-system/karpenter", "controller:1.14.1", "2 replicas")
    assert len(lines(done.output, "is hashed as v5", "stamped anew as v6")) == 3
    assert lines(done.output, "ok", "no node has drifted")
    assert lines(done.output, "note", "AWS", "not asked")
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
        ({"LEADER_ELECTION_NAMESPACE": "ops"}, ("note", "ops/karpenter-leader-election", "is not where Kerf looks")),
        ({"LEADER_ELECTION_NAME": "own"}, ("note", "kube-system/own", "is not where Kerf looks")),
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
    assert lines(found, "note", "Expire within 24 hours", second, "whatever budgets say")
    within = check(objects, "--expire-within-budgets").output
    assert lines(within, "note", "Expire within 24 hours", second, "within the budgets")
    assert "whatever budgets say" not in within


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["migrate", "now"], "only check is known"),
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


# --- of a cluster -----------------------------------------------------------------------------------------------
class SandboxCluster:
    """A cluster and its AWS, in memory."""

    live = True
    withheld: Sequence[str] = ("ServiceAccount",)

    def __init__(self, play: Adopted) -> None:
        self._play = play
        self.manifests = {
            kind.name: [dict(row.manifest) for row in play.world.server.select(kind, "", "", "")]
            for kind in (kinds.NODE_POOL, kinds.NODE_CLASS, kinds.NODE_CLAIM)
        }
        self.manifests["Deployment"] = [karpenter()]

    def snapshot(self, options: Options) -> Snapshot:
        play = self._play
        found = look(play.world.kube, play.cloud, Settings(cluster_name=options.cluster_name), play.world.clock)
        return replace(found, instances=InstanceIndex.of({row.id: row for row in play.cloud.instances()}))

    def rights(self, options: Options) -> tuple[Finding, ...]:
        return (Finding("patch nodes", "ok"), Finding("ec2:DescribeSubnets", "wrong", "no leave", "allow it"))


@pytest.fixture
def play() -> Adopted:
    made = Adopted(sample.manifests(), cluster=sample.CLUSTER)
    made.settle()
    return made


def test_rights_that_are_missing_are_in_the_way(play: Adopted) -> None:
    """Those that are there are counted."""
    answer = migrate_page.sections(SandboxCluster(play), ())
    assert [(one.what, one.how) for one in answer["rights"]] == [
        ("Rights in the cluster and in the account", "ok"),
        ("ec2:DescribeSubnets", "wrong"),
    ]
    assert answer["rights"][0].seen == "2 asked for"
    assert migrate_page.in_the_way(answer)
    assert lines(migrate_page.text(answer), "WRONG", "ec2:DescribeSubnets", "no leave")


def test_nodes_that_cannot_be_judged_are_in_the_way_and_all_else_is_told(play: Adopted) -> None:
    play.seam.fails["cloud", "region"] = Unavailable("AWS does not answer")
    answer = migrate_page.sections(SandboxCluster(play), ())
    assert [(one.how, one.seen) for one in answer["nodes"]] == [("wrong", "cannot be judged: AWS does not answer")]
    assert answer["objects"]


def found(play: Adopted) -> dict[str, Finding]:
    """What is said of nodes, by what it is about; the cluster's name comes from Karpenter's Deployment."""
    return {one.what: one for one in migrate_page.sections(SandboxCluster(play), ())["nodes"]}


def test_a_sound_cluster_and_its_aws(play: Adopted) -> None:
    nodes = found(play)
    assert nodes["Drift"].how == "ok"
    assert nodes["Consolidation"].how == "ok"
    assert "AWS" not in nodes


def test_a_new_image_would_replace_the_nodes_of_its_class(play: Adopted) -> None:
    facts = play.cloud.facts["web"]
    play.cloud.facts["web"] = replace(
        facts, images=(replace(facts.images[0], id="ami-0000000000000face"), *facts.images[1:])
    )
    play.live(seconds=5)
    before = play.objects()
    nodes = found(play)
    assert "web-00000" in nodes["Drifted by AMIDrift"].seen
    assert play.objects() == before


def test_nodes_that_would_be_consolidated(play: Adopted) -> None:
    """All pods of a pool but one leave; its policy lets nodes in use go, and there is room for what is left."""
    for number in range(1, sample.EACH):
        play.world.delete("Pod", f"web-{number}")
    play.world.server.patch(kinds.REPLICA_SET, "default", "web", {"spec": {"replicas": 1}})
    play.world.run(None, timedelta(minutes=5))
    nodes = found(play)
    assert nodes["Consolidation"].how == "doubtful"
    assert "less an hour" in nodes["Consolidation"].seen
    assert "web-0000" in nodes["Consolidation"].seen


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
