"""The controller that runs, as `kerf preflight` sees it: settings, permissions, image, DNS, role, clock and webhook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kerf.model.settings import Settings
from kerf.ports import Forbidden, Invalid, Unavailable
from kerf.runtime.preflight import admission, cluster, controller, installed, situation
from kerf.runtime.preflight.asking import Account as ServiceAccount
from kerf.runtime.preflight.asking import Asker, Right
from kerf.runtime.preflight.findings import DOUBTFUL, GOOD, UNCHECKED, WRONG, Finding
from kerf.runtime.preflight.installed import Installed
from kerf.runtime.preflight.situation import Given, Situation
from kerf.runtime.settings.options import Options
from kerf.runtime.settings.settings import SettingsError

from .preflights import DENIED, GONE, HOOKS, INSTALLED, TRIED, Account, ApiServer

DEPLOYMENTS = "/apis/apps/v1/deployments"
OWN = {"name": "LAUNCH_KEY_SECRET", "value": "kerf-launch-key"}
KERF = ServiceAccount("kerf", "kerf")


def deployment(*env: Mapping[str, Any], name: str = "kerf", args: tuple[str, ...] = ("run",), **pod: Any) -> Any:
    container = {"name": "c", "image": "r/kerf:1", "args": [*args], "env": [OWN, *env]}
    spec = {
        "serviceAccountName": "kerf",
        "containers": [{"name": "sidecar"}, {**container, **pod.pop("own", {})}],
        **pod,
    }
    return {
        "metadata": {"namespace": "kerf", "name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"spec": spec}},
    }


def server(*deployments: Any, **more: Any) -> ApiServer:
    answers = {DEPLOYMENTS: {"items": [*deployments]}, **more.pop("answers", {})}
    return ApiServer(answers, **more)


def variable(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


# --- settings -----------------------------------------------------------------------------------------------------
def found(api: ApiServer, *arguments: str, environment: Mapping[str, str] = {}, values: Any = None) -> Situation:
    return situation.find(Asker(api), Given(arguments, environment, values or {}))


def test_the_settings_are_those_of_the_installed_controller() -> None:
    one = deployment(
        variable("CLUSTER_NAME", "demo"), variable("INTERRUPTION_QUEUE", "q"), args=("run", "--nominate-pods")
    )
    here = found(server(one), environment={"CLUSTER_NAME": "shell", "AWS_REGION": "eu-west-1", "ISOLATED_VPC": "true"})
    assert (here.options.cluster_name, here.options.interruption_queue) == ("demo", "q")
    assert (here.options.region, here.options.isolated_vpc, here.options.nominate_pods) == ("eu-west-1", False, True)
    assert (here.of, here.account) == ("of Deployment kerf/kerf", KERF)


def test_a_flag_comes_before_the_settings_of_the_controller() -> None:
    here = found(server(deployment(variable("CLUSTER_NAME", "demo"))), "--cluster-name", "other")
    assert here.options.cluster_name == "other"


def test_only_kerfs_controller_is_taken_for_it() -> None:
    other = deployment(variable("CLUSTER_NAME", "x"), own={"env": []}, name="karpenter")
    webhook = deployment(variable("CLUSTER_NAME", "x"), args=("webhook",), name="a-webhook")
    second = deployment(variable("CLUSTER_NAME", "y"), name="z")
    here = found(server(other, webhook, second, deployment(variable("CLUSTER_NAME", "demo"))))
    assert here.options.cluster_name == "demo"


def test_settings_of_other_objects_are_named() -> None:
    secret = {"name": "INTERRUPTION_QUEUE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}
    own = {"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    one = deployment(variable("CLUSTER_NAME", "demo"), secret, own)
    one["spec"]["template"]["spec"]["containers"][1]["envFrom"] = [{"secretRef": {"name": "s"}}]
    here = found(server(one)).installed
    assert here is not None
    (note,) = controller.elsewhere(here)
    assert (note.how, note.seen.partition(" of ")[0]) == (DOUBTFUL, "INTERRUPTION_QUEUE, secretRef")


def test_settings_that_the_controller_cannot_read_name_its_deployment() -> None:
    with pytest.raises(SettingsError, match="Deployment kerf/kerf: ISOLATED_VPC"):
        found(server(deployment(variable("CLUSTER_NAME", "demo"), variable("ISOLATED_VPC", "maybe"))))


def test_who_may_not_list_deployments_gives_the_settings() -> None:
    api = server(denied=("list deployments",), caller="system:serviceaccount:kerf:kerf")
    here = found(api, environment={"CLUSTER_NAME": "demo", "LAUNCH_KEY_SECRET": "kerf/launch-key"})
    assert (here.unknown, here.account, here.options.cluster_name) == ("needs list deployments.apps", KERF, "demo")
    assert found(api, "--cluster-name=demo").account is None, "the caller is a ServiceAccount, not the controller's"
    assert f"GET {DEPLOYMENTS}" not in api.asked
    assert found(server(denied=("list deployments",)), "--cluster-name=demo").account is None


# --- before installation ------------------------------------------------------------------------------------------
def test_before_installation_the_values_count_and_the_rest_is_assumed() -> None:
    values = {
        "dnsPolicy": "Default",
        "settings": {"clusterName": "demo", "isolatedVPC": True, "featureGates": {"nodeRepair": True}},
        "serviceAccount": {"name": "k", "annotations": {"eks.amazonaws.com/role-arn": "arn:r"}},
        "controller": {"image": {"repository": "r/kerf"}, "env": [{"name": "AWS_REGION", "value": "eu-west-1"}]},
    }
    here = found(server(), values=values)
    options, to_come = here.options, here.expected
    assert (options.cluster_name, options.isolated_vpc, options.region) == ("demo", True, "eu-west-1")
    assert options.feature_gates.node_repair
    assert to_come is not None
    assert (to_come.dns_policy, to_come.image, to_come.role) == ("Default", "r/kerf", "arn:r")
    assert (here.options.interruption_queue, here.assumed) == ("demo", ("INTERRUPTION_QUEUE=demo", "namespace kerf"))


@pytest.mark.parametrize(
    ("arguments", "environment", "values"),
    [
        (("--interruption-queue", ""), {}, {}),
        ((), {"INTERRUPTION_QUEUE": ""}, {}),
        ((), {}, {"settings": {"interruptionQueue": ""}}),
    ],
)
def test_who_says_that_there_is_no_queue_has_none(arguments: Any, environment: Any, values: Any) -> None:
    here = found(server(), "--cluster-name=demo", *arguments, environment=environment, values=values)
    assert here.options.interruption_queue == ""


def test_what_only_helm_can_fill_in_is_to_be_named() -> None:
    with pytest.raises(SettingsError, match=r"--values: settings.clusterName: .* is a template"):
        found(server(), values={"settings": {"clusterName": "{{ .Values.global.name }}"}})
    with pytest.raises(SettingsError, match="--values: settings: must be a map"):
        found(server(), values={"settings": ["a"]})


def test_without_settings_it_says_where_they_may_come_from() -> None:
    with pytest.raises(SettingsError, match="Kerf is not installed"):
        found(server())


# --- permissions --------------------------------------------------------------------------------------------------
def amiss(api: ApiServer, account: ServiceAccount | None = KERF) -> list[Finding]:
    rows = cluster.permissions(Asker(api), Settings("demo"), account)
    return [one for one in rows if one.how != GOOD]


def test_permissions_are_those_of_the_controller_not_of_the_caller() -> None:
    (one,) = amiss(ApiServer(lacking=("create pods/eviction",)))
    assert (one.what, one.how) == ("create pods/eviction", WRONG)
    assert one.seen == "ServiceAccount kerf/kerf has no permission"
    assert amiss(ApiServer(denied=("create pods/eviction",))) == []


def test_the_controller_itself_needs_no_right_to_ask_for_others() -> None:
    api = ApiServer(denied=("create subjectaccessreviews", "patch nodes"), caller=KERF.user)
    assert [one.what for one in amiss(api)] == ["patch nodes"]
    assert cluster.may_ask_for(Asker(api), KERF) is None


def test_who_may_not_ask_for_others_does_not_call_their_permissions_good() -> None:
    api = ApiServer(denied=("create subjectaccessreviews",))
    one = cluster.may_ask_for(Asker(api), KERF)
    assert one is not None
    assert (one.what, one.how) == ("permissions of ServiceAccount kerf/kerf", UNCHECKED)
    assert one.seen == "not checked: needs create subjectaccessreviews.authorization.k8s.io"
    assert {one.how for one in amiss(api)} == {UNCHECKED}


def test_what_the_caller_may_not_list_is_checked_for_the_controller_all_the_same() -> None:
    api = ApiServer(denied=("list pods",), lacking=("watch pods",))
    rows = cluster.kinds_served(Asker(api), Settings("demo"), cluster.Whose(KERF))
    pods = {one.what: one for one in rows if "pods" in one.what}
    assert (pods["pods can be read"].how, pods["pods can be read"].seen) == (UNCHECKED, "not checked: needs list pods")
    assert (pods["list pods"].how, pods["watch pods"].how) == (GOOD, WRONG)


def test_an_account_is_reviewed_with_its_groups() -> None:
    bodies: list[Any] = []

    class Recording(ApiServer):
        def request(self, method: str, path: str, body: Any = None) -> Any:
            bodies.append(body)
            return super().request(method, path, body)

    Asker(Recording()).may(Right("create", "pods/eviction"), KERF)
    (spec,) = (one["spec"] for one in bodies if one and one["kind"] == "SubjectAccessReview")
    assert (spec["user"], spec["groups"]) == (
        "system:serviceaccount:kerf:kerf",
        ["system:serviceaccounts", "system:serviceaccounts:kerf", "system:authenticated"],
    )
    assert spec["resourceAttributes"] == {"group": "", "resource": "pods", "subresource": "eviction", "verb": "create"}


# --- image --------------------------------------------------------------------------------------------------------
PODS = "/api/v1/namespaces/kerf/pods?labelSelector=app%3Dkerf"


def own() -> Installed:
    here = installed.find(Asker(server(deployment())))
    assert here is not None
    return here


@pytest.mark.parametrize(
    ("state", "how", "words"),
    [
        ({"running": {}}, GOOD, "r/kerf:1"),
        ({"waiting": {"reason": "ContainerCreating"}}, GOOD, "r/kerf:1"),
        ({"waiting": {"reason": "ErrImagePull", "message": "denied"}}, WRONG, "i is not pulled: ErrImagePull: denied"),
        ({"waiting": {"reason": "ImagePullBackOff"}}, WRONG, "i is not pulled: ImagePullBackOff: no message"),
    ],
)
def test_the_image_of_the_controller(state: Any, how: str, words: str) -> None:
    pods = {PODS: {"items": [{}, {"status": {"containerStatuses": [{"image": "i", "state": state}]}}]}}
    one = controller.image(Asker(ApiServer(pods)), own())
    assert (one.how, one.seen) == (how, words)


def test_an_image_of_pods_that_have_not_started_is_not_called_good() -> None:
    one = controller.image(Asker(ApiServer({PODS: {"items": [{"status": {"phase": "Pending"}}]}})), own())
    assert (one.how, "no pod of Deployment kerf/kerf has been started" in one.seen) == (UNCHECKED, True)
    one = controller.image(Asker(ApiServer(denied=("list pods in kerf",))), own())
    assert one.seen == "not checked: needs list pods in kerf"


# --- DNS ----------------------------------------------------------------------------------------------------------
DNS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns"


def dns_pods(*ready: str) -> ApiServer:
    return ApiServer(
        {DNS: {"items": [{"status": {"conditions": [{"type": "Ready", "status": one}]}} for one in ready]}}
    )


@pytest.mark.parametrize(
    ("policy", "api", "how", "words"),
    [
        ("ClusterFirst", dns_pods("False", "True"), GOOD, "1 of 2 pods ready"),
        ("ClusterFirst", dns_pods("False"), WRONG, "no pod of CoreDNS is ready (of 1)"),
        ("ClusterFirstWithHostNet", dns_pods(), WRONG, "no pod of CoreDNS is ready (of 0)"),
        ("Default", dns_pods(), GOOD, "not used: dnsPolicy is Default"),
        ("ClusterFirst", ApiServer(denied=("list pods in kube-system",)), UNCHECKED, "needs list pods in kube-system"),
    ],
)
def test_the_dns_that_the_controller_asks(policy: str, api: ApiServer, how: str, words: str) -> None:
    one = controller.dns(Asker(api), policy)
    assert (one.how, words in one.seen) == (how, True)
    assert ("dnsPolicy=Default" in one.fix) == (how == WRONG)


# --- role ---------------------------------------------------------------------------------------------------------
ACCOUNT = "/api/v1/namespaces/kerf/serviceaccounts/kerf"
IRSA = {ACCOUNT: {"metadata": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/path/irsa"}}}}
PLAIN: Any = {ACCOUNT: {"metadata": {}}}
ASSOCIATED = {
    "list_pod_identity_associations": {"associations": [{"associationId": "a-1"}]},
    "describe_pod_identity_association": {"association": {"associationId": "a-1", "roleArn": "arn:aws:iam::1:role/p"}},
}
NONE: Any = {"list_pod_identity_associations": {"associations": []}}
ROLE = {"get_role": {"Role": {"RoleName": "r"}}}


@pytest.mark.parametrize(
    ("api", "answers", "how", "words"),
    [
        (ApiServer(IRSA), ROLE, GOOD, "arn:aws:iam::1:role/path/irsa"),
        (ApiServer(IRSA), {"get_role": "NoSuchEntity"}, WRONG, "IAM has no role arn:aws:iam::1:role/path/irsa"),
        (ApiServer(PLAIN), ASSOCIATED | ROLE, GOOD, "arn:aws:iam::1:role/p"),
        (ApiServer(PLAIN), ASSOCIATED | {"get_role": "NoSuchEntity"}, WRONG, "IAM has no role arn:aws:iam::1:role/p"),
        (ApiServer(PLAIN), NONE, WRONG, "ServiceAccount kerf/kerf has no annotation eks.amazonaws.com/role-arn"),
        (ApiServer(PLAIN), {"list_pod_identity_associations": DENIED}, UNCHECKED, "eks:ListPodIdentityAssociations"),
        (ApiServer(IRSA), {"get_role": "AccessDenied"}, UNCHECKED, "iam:GetRole"),
        (ApiServer(denied=("get serviceaccounts in kerf",)), {}, UNCHECKED, "needs get serviceaccounts in kerf"),
        (ApiServer(), {}, WRONG, "there is no ServiceAccount kerf/kerf"),
    ],
)
def test_the_role_of_the_controller(api: ApiServer, answers: Any, how: str, words: str) -> None:
    clients: Any = Account(answers)
    one = controller.role(Asker(api), clients, Options(cluster_name="demo"), KERF)
    assert (one.what, one.how, words in one.seen) == ("role of the controller", how, True), one
    if "annotation" in words:
        assert "Namespace=kerf ServiceAccount=kerf" in one.fix


def test_an_isolated_vpc_does_not_ask_iam() -> None:
    account = Account(ROLE)
    clients: Any = account
    one = controller.role(Asker(ApiServer(IRSA)), clients, Options(cluster_name="demo", isolated_vpc=True), KERF)
    assert (one.how, account.asked) == (UNCHECKED, [])


# --- clock --------------------------------------------------------------------------------------------------------
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kerf/leases/l"


def lease(renewed: str | None, *taken: str) -> ApiServer:
    fields: Any = {"f:spec": {"f:renewTime": {}}}
    rows: list[Any] = [{"time": one, "fieldsV1": fields} for one in taken]
    rows.append({"time": "2026-05-01T13:00:00Z", "fieldsV1": {"f:metadata": {}}})
    return ApiServer({LEASE: {"metadata": {"managedFields": rows}, "spec": {"renewTime": renewed}}})


@pytest.mark.parametrize(
    ("api", "how", "words"),
    [
        (lease("2026-05-01T12:00:01.000000Z", "2026-05-01T11:00:00Z", "2026-05-01T12:00:00Z"), GOOD, ""),
        (lease("2026-05-01T12:06:00.000000Z", "2026-05-01T12:00:00Z"), WRONG, "it is 360 s ahead of the API server"),
        (lease("2026-05-01T11:59:00.000000Z", "2026-05-01T12:00:00Z"), DOUBTFUL, "it is 60 s behind the API server"),
        (lease(None), UNCHECKED, "does not show when it was renewed"),
        (lease("soon", "2026-05-01T12:00:00Z"), UNCHECKED, "does not show when it was renewed"),
        (ApiServer(), UNCHECKED, "there is no Lease kerf/l"),
        (ApiServer(denied=("get leases in kerf",)), UNCHECKED, "needs get leases.coordination.k8s.io in kerf"),
    ],
)
def test_the_clock_of_the_controller(api: ApiServer, how: str, words: str) -> None:
    one = controller.clock(Asker(api), Options(leader_election_name="l"), KERF)
    assert (one.what, one.how, words in one.seen) == ("clock of the controller", how, True), one


# --- webhook ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "how", "words"),
    [
        (
            {TRIED: Invalid('POST: 400 admission webhook "validation.webhook.kerf.sh" denied the request: x')},
            GOOD,
            "Service kerf/kerf-webhook answers the API server",
        ),
        (
            {TRIED: Unavailable('POST: 500 failed calling webhook "defaulting.webhook.kerf.sh": dial: refused')},
            WRONG,
            "the API server does not reach Service kerf/kerf-webhook: dial: refused",
        ),
        ({TRIED: {}}, WRONG, "and accepts objects unchecked (failurePolicy Ignore)"),
        ({TRIED: Unavailable("POST: 503")}, UNCHECKED, "503"),
        ({TRIED: Invalid("POST: 422 policy")}, UNCHECKED, "before the webhook sees it"),
        ({TRIED: Forbidden("POST: 403")}, UNCHECKED, "create nodepools.karpenter.sh"),
        ({HOOKS: {"items": []}}, GOOD, "not installed"),
    ],
)
def test_the_webhook(answers: Any, how: str, words: str) -> None:
    one = admission.look(Asker(ApiServer({**INSTALLED, **answers})))
    assert (one.how, words in one.seen) == (how, True), one
    if how == WRONG:
        assert "-n kerf" in one.fix
        assert "TCP 8443" in one.fix


@pytest.mark.parametrize("right", ["create nodepools", "list validatingwebhookconfigurations"])
def test_the_webhook_is_not_tried_without_the_permission(right: str) -> None:
    api = ApiServer(INSTALLED, denied=(right,))
    one = admission.look(Asker(api))
    assert (one.how, f"needs {right}" in one.seen) == (UNCHECKED, True)
    assert f"POST {TRIED}" not in api.asked


def test_a_role_that_eks_does_not_know_the_cluster_of_is_not_called_good() -> None:
    clients: Any = Account({"list_pod_identity_associations": GONE})
    one = controller.role(Asker(ApiServer(PLAIN)), clients, Options(cluster_name="demo"), KERF)
    assert one.how == UNCHECKED


def test_before_installation_the_role_is_that_of_the_values_or_of_the_association() -> None:
    clients: Any = Account(ASSOCIATED | ROLE)
    options = Options(cluster_name="demo")
    assert controller.role_finding(clients, options, KERF, "arn:aws:iam::1:role/v").seen == "arn:aws:iam::1:role/v"
    assert controller.role_finding(clients, options, KERF, "").seen == "arn:aws:iam::1:role/p"
    nobody: Any = Account(NONE)
    assert controller.role_finding(nobody, options, KERF, "").how == WRONG
