"""Annotations in which Kerf keeps its own state, on the real API server: another account may not change them.

The editor may do anything with NodePools, NodeClaims and EC2NodeClasses, and nothing else. No controller runs, so each
object is as a test leaves it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.ipv6 import HAS_IPV6
from tests.unit.api.manifests import BASES, placed

from .control_plane import ControlPlane
from .installation import NAMESPACE, Installation

pytestmark = pytest.mark.cluster

EDITOR: Final = "system:serviceaccount:shop:editor"
TRUSTED: Final = "restore@example.com"
REQUEST: Final = "kerf.sh/launch-request"
NOTES: Final = {REQUEST: '{"image": "ami-1"}', "kerf.sh/launch-group": "g1", "example.com/team": "web"}
REFUSED: Final = 'admission webhook "annotations.webhook.kerf.sh" denied the request: '
RESOURCES: Final = {"NodeClaim": "nodeclaim", "NodePool": "nodepool", "EC2NodeClass": "ec2nodeclass"}
HOSTS: Final = ("127.0.0.1", "[::1]") if HAS_IPV6 else ("127.0.0.1",)
REVIEWS: Final = 'kerf_webhook_reviews_total{outcome="%s",path="%s"'


@dataclass(frozen=True)
class Editor:
    """kubectl as one account; `does` has to succeed, `refused` to fail by the webhook. Both return the output."""

    kerf: Installation
    name: str = EDITOR

    def does(self, *arguments: str, input_: str | None = None) -> str:
        return self.kerf.kubectl("--as", self.name, *arguments, input_=input_)

    def refused(self, *arguments: str, input_: str | None = None) -> str:
        output = self.kerf.kubectl("--as", self.name, *arguments, input_=input_, check=False)
        assert REFUSED in output, output
        return output

    def create(self, kind: str, name: str, notes: Any) -> str:
        return self.does("create", "-f", "-", input_=manifest(kind, name, notes))


@pytest.fixture(scope="module")
def kerf(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder, values = tmp_path_factory.mktemp("annotations"), {"webhook.trustedAccounts[0]": TRUSTED}
    with Installation(control_plane, folder, values=values, controller=False) as installation:
        role = ("--verb=*", "--resource=nodepools,nodeclaims,ec2nodeclasses,nodeclaims/status,nodepools/scale")
        installation.kubectl("create", "clusterrole", "annotations", *role)
        users = (f"--user={user}" for user in (EDITOR, TRUSTED))
        installation.kubectl("create", "clusterrolebinding", "annotations", "--clusterrole=annotations", *users)
        yield installation
        for resource in RESOURCES.values():
            installation.kubectl("delete", resource, "-l", "test=annotations", "--wait=false")
        installation.kubectl("delete", "clusterrole,clusterrolebinding", "annotations")


@pytest.fixture
def editor(kerf: Installation) -> Editor:
    return Editor(kerf)


@pytest.fixture
def claim(kerf: Installation, request: pytest.FixtureRequest) -> str:
    """The name of a NodeClaim with annotations that Kerf has written."""
    name: str = request.node.originalname.replace("_", "-")[:60].strip("-")
    kerf.kubectl("--as", TRUSTED, "create", "-f", "-", input_=manifest("NodeClaim", name, NOTES))
    return name


def manifest(kind: str, name: str, notes: Any) -> str:
    made = placed(BASES[kind], "metadata", {"name": name, "labels": {"test": "annotations"}, "annotations": notes})
    return json.dumps(made)


def live(kerf: Installation, kind: str, name: str) -> Any:
    return kerf.one(RESOURCES[kind], name)


def test_the_webhook_answers_over_ipv6_as_over_ipv4(kerf: Installation) -> None:
    names = {host: [row.partition(" ")[0] for row in kerf.webhook_metrics(host).splitlines()] for host in HOSTS}
    assert len(names) == 1 + HAS_IPV6
    assert all("kerf_webhook_certificate_expiry_timestamp_seconds" in rows for rows in names.values())


def merge(**metadata: Any) -> str:
    return json.dumps({"metadata": metadata})


def reviewed(kerf: Installation, outcome: str, path: str = "/annotations") -> float:
    """How many reviews the webhook has answered so."""
    rows = [row for row in kerf.webhook_metrics().splitlines() if row.startswith(REVIEWS % (outcome, path))]
    return sum(float(row.rpartition(" ")[2]) for row in rows)


def test_an_editor_of_claims_adds_no_launch_request(editor: Editor, kerf: Installation) -> None:
    editor.create("NodeClaim", "plain", {})
    for patch in ("merge", "json"):
        body: Any = {"metadata": {"annotations": {REQUEST: "{}"}}}
        if patch == "json":
            body = [{"op": "add", "path": "/metadata/annotations", "value": {REQUEST: ""}}]
        output = editor.refused("patch", "nodeclaim", "plain", f"--type={patch}", "-p", json.dumps(body))
        assert (
            f"NodeClaim plain: metadata.annotations[{REQUEST}] is added: only Kerf and the accounts in "
            f'webhook.trustedAccounts of its chart may do that, and the account "{EDITOR}" is none of them; '
            "remove it from the manifest"
        ) in output
    editor.refused("annotate", "nodeclaim", "plain", "kerf.sh/ends=Expired")
    editor.refused("apply", "--server-side", "-f", "-", input_=manifest("NodeClaim", "plain", NOTES))
    assert "annotations" not in live(kerf, "NodeClaim", "plain")["metadata"]


def test_no_new_claim_has_them(editor: Editor, kerf: Installation) -> None:
    for notes in (NOTES, {"kerf.sh/instance": ""}, {"karpenter.sh/nodepool-hash": "1"}, {"kerf.sh/ends": None}):
        editor.refused("create", "--validate=false", "-f", "-", input_=manifest("NodeClaim", "forged", notes))
    generated = placed(json.loads(manifest("NodeClaim", "x", NOTES)), "metadata.generateName", "made-")
    del generated["metadata"]["name"]
    assert "NodeClaim made-" in editor.refused("create", "-f", "-", input_=json.dumps(generated))
    editor.refused("apply", "--server-side", "-f", "-", input_=manifest("NodeClaim", "forged", NOTES))
    assert "forged" not in kerf.kubectl("get", "nodeclaims", "-o", "name")


def test_nothing_that_kerf_wrote_is_changed_or_removed(editor: Editor, kerf: Installation, claim: str) -> None:
    before = live(kerf, "NodeClaim", claim)
    editor.refused("annotate", "--overwrite", "nodeclaim", claim, "kerf.sh/launch-group=g2")
    editor.refused("annotate", "nodeclaim", claim, "kerf.sh/launch-group-")
    assert "are removed" not in editor.refused(
        "patch", "nodeclaim", claim, "--type=merge", "-p", merge(annotations=None)
    )
    editor.refused("replace", "-f", "-", input_=json.dumps(placed(before, "metadata.annotations", {})))
    editor.refused("annotate", "--overwrite", "nodeclaim", claim, "kerf.sh/launch-group=")
    assert live(kerf, "NodeClaim", claim) == before


def test_unchanged_annotations_pass(editor: Editor, kerf: Installation, claim: str) -> None:
    """`kubectl replace` of the object as it is, finalizers, labels, other annotations, and a deletion."""
    denied, allowed = reviewed(kerf, "denied"), reviewed(kerf, "allowed")
    editor.does("replace", "-f", "-", input_=json.dumps(live(kerf, "NodeClaim", claim)))
    editor.does("patch", "nodeclaim", claim, "--type=merge", "-p", merge(finalizers=["karpenter.sh/termination"]))
    editor.does("annotate", "nodeclaim", claim, "karpenter.sh/do-not-disrupt=true", "kerf.sh/allow-deletion=1")
    editor.does("label", "nodeclaim", claim, "team=web")
    editor.does("apply", "--server-side", "-f", "-", "--force-conflicts", input_=manifest("NodeClaim", claim, NOTES))
    editor.does("delete", "nodeclaim", claim, "--wait=false")
    assert "deletionTimestamp" in live(kerf, "NodeClaim", claim)["metadata"]
    editor.refused("annotate", "nodeclaim", claim, "kerf.sh/ends=Expired")
    editor.does("patch", "nodeclaim", claim, "--type=merge", "-p", merge(finalizers=None))
    assert claim not in kerf.kubectl("get", "nodeclaims", "-o", "name")
    assert reviewed(kerf, "denied") == denied + 1
    assert reviewed(kerf, "allowed") == allowed, "the API server asks about changes of these annotations only"


def test_the_status_changes_no_annotation(editor: Editor, kerf: Installation, claim: str) -> None:
    body = {"metadata": {"annotations": {REQUEST: "{}"}}, "status": {"nodeName": "node"}}
    editor.does("patch", "nodeclaim", claim, "--subresource=status", "--type=merge", "-p", json.dumps(body))
    after = live(kerf, "NodeClaim", claim)
    assert (after["status"]["nodeName"], after["metadata"]["annotations"]) == ("node", NOTES)


def test_annotations_as_large_as_the_api_server_takes_are_compared(editor: Editor, kerf: Installation) -> None:
    """In match conditions each comparison has a cost, and too high a cost would let the request pass."""
    trusted, many = Editor(kerf, TRUSTED), {f"a/{number}": "" for number in range(30_000)}
    by_file = ("--type=merge", "--patch-file=/dev/stdin")
    editor.create("NodeClaim", "many", {})
    editor.refused("patch", "nodeclaim", "many", *by_file, input_=merge(annotations={**many, REQUEST: ""}))
    trusted.create("NodeClaim", "large", {"a": "x" * 100_000, REQUEST: "x" * 100_000})
    editor.refused("patch", "nodeclaim", "large", *by_file, input_=merge(annotations={REQUEST: "x" * 99_999 + "y"}))
    editor.does("annotate", "nodeclaim", "large", "b=c")


def test_kerf_and_trusted_accounts_may(kerf: Installation, claim: str) -> None:
    own = f"system:serviceaccount:{NAMESPACE}:kerf"
    for name, key in ((own, "kerf.sh/command"), (TRUSTED, "kerf.sh/ends")):
        Editor(kerf, name).does("patch", "nodeclaim", claim, "--type=merge", "-p", merge(annotations={key: "x"}))
    for name in ("system:serviceaccount:kube-system:karpenter", "system:admin", f"{own}-webhook"):
        admin = ("--as-group=system:masters", "patch", "nodeclaim", claim, "--type=merge", "-p")
        Editor(kerf, name).refused(*admin, merge(annotations={"kerf.sh/probes": "x"}))


@pytest.mark.parametrize(
    ("kind", "hashed", "note"),
    [
        ("NodePool", "karpenter.sh/nodepool-hash", "kerf.sh/back-off"),
        ("EC2NodeClass", "karpenter.k8s.aws/ec2nodeclass-hash", "kerf.sh/garbage-collected"),
    ],
)
def test_a_copy_may_have_the_hashes_and_no_state(
    editor: Editor, kerf: Installation, kind: str, hashed: str, note: str
) -> None:
    resource, name = RESOURCES[kind], f"annotations-{RESOURCES[kind]}"
    editor.refused("create", "-f", "-", input_=manifest(kind, name, {hashed: "1", note: "[]"}))
    editor.create(kind, name, {hashed: "1"})
    editor.refused("annotate", "--overwrite", resource, name, f"{hashed}=2")
    editor.refused("annotate", resource, name, f"{note}=[]")
    editor.does("replace", "-f", "-", input_=json.dumps(live(kerf, kind, name)))
    editor.does("annotate", resource, name, "kerf.sh/allow-deletion=1", "kerf.sh/allow-garbage-collection=0123456789")
    editor.does("replace", "-f", "-", input_=manifest(kind, name, {}))
    assert "annotations" not in live(kerf, kind, name)["metadata"]


def test_the_terminated_instances_are_not_removed(editor: Editor, kerf: Installation) -> None:
    name, key = "annotations-garbage", "kerf.sh/garbage-collected"
    Editor(kerf, TRUSTED).create("NodePool", name, {key: "[]"})
    assert f"[{key}] is removed" in editor.refused("annotate", "nodepool", name, f"{key}-")


def test_annotations_of_users_are_checked_though_the_spec_stays(editor: Editor, kerf: Installation) -> None:
    name = "annotations-of-users"
    editor.create("NodePool", name, {})
    for note in ("kerf.sh/consolidation-minimum-age=soon", "kerf.sh/plan-first=perhaps"):
        output = kerf.kubectl("--as", EDITOR, "annotate", "nodepool", name, note, check=False)
        assert f"metadata.annotations[{note.partition('=')[0]}]: " in output, output
    editor.does("annotate", "nodepool", name, "kerf.sh/consolidation-minimum-age=1h")


def test_a_template_gets_none_and_keeps_the_old_ones(editor: Editor, kerf: Installation) -> None:
    """Also where the spec is wrong by the rules of today: metadata may still change."""
    place, name = "spec.template.metadata.annotations", "annotations-template"
    made = placed(json.loads(manifest("NodePool", name, {})), place, {REQUEST: "{}"})
    output = kerf.kubectl("--as", EDITOR, "create", "-f", "-", input_=json.dumps(made), check=False)
    assert f"{place}[{REQUEST}]: Kerf writes this annotation" in output
    assert "KERF-NP-126" in output
    kerf.kubectl(
        "--as",
        f"system:serviceaccount:{NAMESPACE}:kerf",
        "--as-group=system:masters",
        "create",
        "-f",
        "-",
        input_=json.dumps(made),
    )
    before = reviewed(kerf, "allowed", "/validate")
    editor.does("annotate", "nodepool", name, "a=b")
    editor.does("label", "nodepool", name, "a=b")
    assert reviewed(kerf, "allowed", "/validate") == before, "updates of metadata do not reach the other webhooks"
    editor.does("patch", "nodepool", name, "--type=merge", "-p", '{"spec": {"weight": 7}}')
    assert live(kerf, "NodePool", name)["spec"]["weight"] == 7
    more = json.dumps({"spec": {"template": {"metadata": {"annotations": {"kerf.sh/ends": "x"}}}}})
    output = kerf.kubectl("--as", EDITOR, "patch", "nodepool", name, "--type=merge", "-p", more, check=False)
    assert f"{place}[kerf.sh/ends]: " in output
    assert f"{place}[{REQUEST}]: " not in output
