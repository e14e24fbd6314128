"""Faults of a running cluster, each made for real: how, and by which words the cause of each is known.

`test_faults.py` makes each of them and asks every tool of an operator; `fault_records.py` keeps the answers.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from kerf_api.quantity import amount
from tests.sources import ROOT

from .installation import CLUSTER_NAME, KERF, NAMESPACE, Installation
from .proxy import KUBE, PASS, Decision, Delay, Request, pass_all
from .slips import quota_reached

HERE: Final = Path(__file__).parent
WORKLOADS: Final = HERE / "workloads.yaml"
_PERSON: Final = "person"
_PDB: Final = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
}
_SLOW_SECONDS: Final = 1.2
#: The request of a pod of `workloads.yaml`, in thousandths of a CPU.
_CPU_OF_WEB: Final = 250
_DENIED: Final = ("CreateFleet", "DescribeInstances", "DescribeInstanceStatus", "DescribeSubnets", "DescribeImages")


class Faulty(Installation):
    """An installation whose webhook runs and whose commands are those of an administrator behind the same network."""

    def tried(self, *arguments: str) -> str:
        """What a command prints, however it exits, with standard error."""
        environment = {**self._environment(), "KUBECONFIG": str(self._folder / f"{_PERSON}.kubeconfig")}
        command = (*KERF, *arguments)
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=400
        )
        return done.stdout + done.stderr

    def keep_running(self) -> None:
        """Start what has ended by itself, as a kubelet does."""
        for name, process in list(self._processes.items()):
            if process.poll() is not None:
                self._look_after(name)

    def admit(self) -> None:
        """Make the administrator's account, which reaches the API server as the controller does."""
        self.kubectl("create", "serviceaccount", _PERSON, "-n", NAMESPACE)
        subject = f"--serviceaccount={NAMESPACE}:{_PERSON}"
        self.kubectl("create", "clusterrolebinding", _PERSON, "--clusterrole=cluster-admin", subject)
        self.account(_PERSON)

    @contextmanager
    def boots_paused(self) -> Iterator[None]:
        """No instance that is launched meanwhile joins the cluster."""
        assert self._bootstrapper is not None
        self._bootstrapper.paused = True
        try:
            yield
        finally:
            self._bootstrapper.paused = False

    @contextmanager
    def expired_certificate(self) -> Iterator[None]:
        """The webhook serves a certificate that has expired."""
        pair = self._webhook_keys
        before = pair.certificate.read_bytes(), pair.key.read_bytes()
        self._authority.server("kerf-webhook", timedelta(minutes=-1))
        self._again()
        try:
            yield
        finally:
            pair.certificate.write_bytes(before[0])
            pair.key.write_bytes(before[1])
            self._again()
            self.wait(self.webhook_answers, 60, "the webhook answers")

    def _again(self) -> None:
        self.kill_webhook()
        self._start(
            "webhook", *self._arguments["webhook"], environment={"KUBECONFIG": str(self.account("kerf-webhook"))}
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in words; how it is made, which undoes it at the end; the object to ask `kerf why` about (its arguments);
    the words of its cause, as a regular expression; the alerts that name it; and the time in which tools name it."""

    name: str
    made: Callable[[Faulty], AbstractContextManager[None]]
    why: Callable[[Faulty], tuple[str, ...]]
    cause: str
    alerts: tuple[str, ...]
    seconds: float = 150.0

    @property
    def slug(self) -> str:
        return re.sub("[^a-z0-9]+", "-", self.name.lower()).strip("-")


# --- objects to ask about -----------------------------------------------------------------------------------------
def _first_claim(kerf: Faulty) -> str:
    return min(str(one["metadata"]["name"]) for one in kerf.get("nodeclaims"))


def _of_claim(kerf: Faulty) -> tuple[str, ...]:
    going = [one["metadata"]["name"] for one in kerf.get("nodeclaims") if "deletionTimestamp" in one["metadata"]]
    return "nodeclaim", min(going, default=_first_claim(kerf))


def _of_new_claim(kerf: Faulty) -> tuple[str, ...]:
    claims = kerf.get("nodeclaims")
    return "nodeclaim", max((one["metadata"]["creationTimestamp"], one["metadata"]["name"]) for one in claims)[1]


def _of_pool(_: Faulty) -> tuple[str, ...]:
    return "nodepool", "general"


def _of_pending(kerf: Faulty) -> tuple[str, ...]:
    waiting = (one for one in kerf.get("pods", namespace="default") if not one["spec"].get("nodeName"))
    return "pod", min((f"default/{one['metadata']['name']}" for one in waiting), default="default/none")


# --- parts of faults ----------------------------------------------------------------------------------------------
@contextmanager
def _more_pods(kerf: Faulty) -> Iterator[None]:
    """More than the nodes can hold, also those that an earlier fault has left."""
    millis = sum(amount("cpu", one["status"]["allocatable"]["cpu"]) for one in kerf.get("nodes"))
    kerf.kubectl("scale", "deployment/web", f"--replicas={20 + millis // _CPU_OF_WEB}")
    try:
        yield
    finally:
        kerf.kubectl("scale", "deployment/web", "--replicas=4")


@contextmanager
def _a_drain(kerf: Faulty) -> Iterator[None]:
    name = _first_claim(kerf)
    kerf.kubectl("delete", "nodeclaim", name, "--wait=false")
    yield


def _without(resource: str, verb: str) -> Callable[[Faulty], AbstractContextManager[None]]:
    @contextmanager
    def made(kerf: Faulty) -> Iterator[None]:
        kept = [_less(rule, resource, verb) for rule in kerf.rules()]
        with kerf.allowed_only([rule for rule in kept if rule["verbs"]]):
            yield

    return made


def _less(rule: Mapping[str, Any], resource: str, verb: str) -> dict[str, Any]:
    verbs = [one for one in rule["verbs"] if one != verb] if resource in rule["resources"] else rule["verbs"]
    return {**rule, "verbs": verbs}


def _with(*parts: Callable[[Faulty], AbstractContextManager[None]]) -> Callable[[Faulty], AbstractContextManager[None]]:
    @contextmanager
    def made(kerf: Faulty) -> Iterator[None]:
        with ExitStack() as stack:
            for part in parts:
                stack.enter_context(part(kerf))
            yield

    return made


# --- in the cluster -----------------------------------------------------------------------------------------------
@contextmanager
def _started_again(kerf: Faulty) -> Iterator[None]:
    """The controller starts: a watch that goes on is not asked about its rights again."""
    kerf.stop_controller()
    kerf.start_controller()
    yield


@contextmanager
def scheduler_stopped(kerf: Faulty) -> Iterator[None]:
    pid = next(one.pid for one in kerf.control_plane.components if one.name == "kube-scheduler")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def budget_of_none(kerf: Faulty) -> Iterator[None]:
    kerf.kubectl("apply", "-f", "-", input_=json.dumps(_PDB))
    try:
        yield
    finally:
        kerf.kubectl("delete", "pdb", "web", "-n", "default")


@contextmanager
def api_server_slow(kerf: Faulty) -> Iterator[None]:
    def slow(request: Request) -> Decision:
        return Delay(_SLOW_SECONDS) if request.port == KUBE and not request.is_watch else PASS

    kerf.proxy.rule = slow
    try:
        yield
    finally:
        kerf.proxy.rule = pass_all


@contextmanager
def class_deleted(kerf: Faulty) -> Iterator[None]:
    kerf.kubectl("delete", "ec2nodeclass", "default", "--wait=false")
    try:
        yield
    finally:
        kerf.kubectl("delete", "nodeclaims", "--all", "--wait=false")
        kerf.wait(lambda: not kerf.get("ec2nodeclasses"), 180, "the EC2NodeClass is gone")
        kerf.kubectl("apply", "-f", str(WORKLOADS))


# --- in the account -----------------------------------------------------------------------------------------------
@contextmanager
def access_denied(kerf: Faulty) -> Iterator[None]:
    """As when the role of the controller has lost its policy."""
    for action in _DENIED:
        kerf.aws.fail(action, "UnauthorizedOperation", "You are not authorized to perform this operation.", times=10**6)
    try:
        yield
    finally:
        kerf.aws.clear_faults()


@contextmanager
def images_gone(kerf: Faulty) -> Iterator[None]:
    before = kerf.get("ec2nodeclasses")[0]["spec"]
    gone = {"amiFamily": "AL2023", "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}
    kerf.kubectl("patch", "ec2nodeclass", "default", "--type=merge", "-p", json.dumps({"spec": gone}))
    try:
        yield
    finally:
        whole = [{"op": "replace", "path": "/spec", "value": before}]
        kerf.kubectl("patch", "ec2nodeclass", "default", "--type=json", "-p", json.dumps(whole))


def _refused(code: str) -> Callable[[Faulty], AbstractContextManager[None]]:
    @contextmanager
    def made(kerf: Faulty) -> Iterator[None]:
        kerf.aws.stock_out(code=code)
        try:
            yield
        finally:
            kerf.aws.restock()

    return made


@contextmanager
def queue_gone(kerf: Faulty) -> Iterator[None]:
    sqs = kerf.aws.client("sqs")
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=CLUSTER_NAME)["QueueUrl"])
    try:
        yield
    finally:
        sqs.create_queue(QueueName=CLUSTER_NAME)


FAULTS: Final = (
    Fault(
        "The permission `create pods/eviction` is missing",
        _with(_without("pods/eviction", "create"), _a_drain),
        _of_claim,
        "pods/eviction",
        ("KerfActionsFail",),
    ),
    Fault(
        "The permission `patch nodes` is missing",
        _with(_without("nodes", "patch"), _more_pods),
        _of_new_claim,
        r"patch resource .nodes.|patch nodes",
        ("KerfActionsFail",),
    ),
    Fault(
        "The permission `create nodeclaims` is missing",
        _with(_without("nodeclaims", "create"), _more_pods),
        _of_pending,
        r"create resource .nodeclaims.|create nodeclaims",
        ("KerfActionsFail",),
    ),
    Fault(
        "The permission `list pods` is missing",
        _with(_without("pods", "list"), _started_again),
        _of_pool,
        r"list resource .pods.|list pods|not listed yet.*Pod",
        ("KerfNotSynced",),
    ),
    Fault(
        "AWS denies access to the controller",
        _with(access_denied, _more_pods),
        _of_pending,
        "UnauthorizedOperation|not authorized",
        ("KerfTroubles",),
        240.0,
    ),
    Fault(
        "The image of the EC2NodeClass is gone",
        _with(images_gone, _more_pods),
        _of_pool,
        "AMINotFound|AMIsReady|ami-0123456789abcdef0|AMISelector",
        ("KerfNodeClassNotReady",),
    ),
    Fault(
        "The subnets have no free address",
        _with(_refused("InsufficientFreeAddressesInSubnet"), _more_pods),
        _of_pending,
        "InsufficientFreeAddresses|free address",
        ("KerfLaunchesRefused",),
    ),
    Fault(
        "The quota of vCPUs is reached",
        _with(_refused("VcpuLimitExceeded"), quota_reached, _more_pods),
        _of_pending,
        "VcpuLimitExceeded|L-1216C47A|quota",
        ("KerfLaunchesRefused",),
    ),
    Fault(
        "The interruption queue is gone",
        queue_gone,
        _of_pool,
        "QueueDoesNotExist|NonExistentQueue|queue kerf-e2e",
        ("KerfTroubles",),
        240.0,
    ),
    Fault(
        "The API server is slow",
        _with(api_server_slow, _more_pods),
        _of_pool,
        "answers slowly",
        ("KerfApiServerSlow",),
        300.0,
    ),
    Fault(
        "The certificate of the webhook has expired",
        _with(Faulty.expired_certificate, _more_pods),
        _of_pending,
        "certificate has expired",
        ("KerfWebhookCertificateExpires",),
        240.0,
    ),
    Fault(
        "The kube-scheduler is stopped",
        _with(scheduler_stopped, _more_pods),
        _of_pending,
        "scheduler.* (has not|has neither|neither)|default-scheduler",
        ("KerfTroubles",),
        240.0,
    ),
    Fault(
        "A PodDisruptionBudget allows no eviction",
        _with(budget_of_none, _a_drain),
        _of_claim,
        "default/web",
        ("KerfNodeDoesNotDrain",),
        240.0,
    ),
    Fault(
        "New nodes do not join the cluster",
        _with(Faulty.boots_paused, _more_pods),
        _of_new_claim,
        "NodeNotFound|has not joined|not registered|NodeNotRegistered|Registered is",
        ("KerfNodeNotInitialized",),
        420.0,
    ),
    Fault(
        "The EC2NodeClass is deleted while it is in use",
        _with(class_deleted, _more_pods),
        _of_pool,
        "NodeClassTerminating|is being deleted|NodeClassNotFound|Terminating",
        ("KerfNodePoolNotReady",),
    ),
)
