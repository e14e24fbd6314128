"""`kerf preflight`: whether a cluster and an account have what Kerf needs, and what to mend. It changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext

if TYPE_CHECKING:
    from kerf.kube.client import KubeClient
    from kerf.model.kinds import Kind
    from kerf.runtime.preflight.findings import Finding
    from kerf.runtime.settings.options import Options

_USAGE = """\
kerf preflight [--kubeconfig FILE] [--context NAME] [settings]

Looks at what Kerf needs before it is installed, or when something does not work: the API server and its kinds, the
rights of whoever asks in the cluster and in the account, the interruption queue, for each EC2NodeClass its subnets,
security groups and images, the service-linked role for spot, VPC endpoints (with ISOLATED_VPC), the agent of EKS Pod
Identity and the access entries of Windows nodes. It asks with your own credentials; to ask with the controller's, run
it in its pod: kubectl exec -n NAMESPACE deploy/NAME -- kerf preflight. Nothing is changed: rights in EC2 are asked for
by dry run.

  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig

Settings are those of `kerf run` (flags or variables); CLUSTER_NAME (--cluster-name) is required.
Exit codes: 0 nothing is wrong; 1 something is; 2 the command is wrong."""

_SIGNS: Final = {"ok": "  ok    ", "doubtful": "  ?     ", "wrong": "  WRONG "}


def preflight(
    context: typer.Context,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
) -> None:
    """Whether a cluster and an account have what Kerf needs, and what to mend."""
    if "--help" in context.args or "-h" in context.args:
        typer.echo(_USAGE)
        return
    from kerf.runtime.settings import settings

    try:
        options = settings.parse(context.args, os.environ)
        found = list(_told(_look(options, kubeconfig, kube_context)))
    except settings.SettingsError as error:
        typer.echo("\n".join(f"kerf preflight: {problem}" for problem in error.problems), err=True)
        raise typer.Exit(2) from error
    wrong = sum(one.how == "wrong" for one in found)
    doubtful = sum(one.how == "doubtful" for one in found)
    typer.echo(f"\n{wrong} of {len(found)} are wrong, {doubtful} doubtful")
    if wrong:
        raise typer.Exit(1)


def _told(findings: Iterable[Finding]) -> Iterator[Finding]:
    for one in findings:
        typer.echo(_SIGNS[one.how] + one.what + (f": {one.seen}" if one.seen else ""))
        if one.fix and one.how != "ok":
            typer.echo(f"          {one.fix}")
        yield one


def _look(options: Options, kubeconfig: str, kube_context: str) -> Iterator[Finding]:
    """First the cluster, then the account. Raises SettingsError."""
    from kerf.model import kinds
    from kerf.ports import PortError
    from kerf.runtime.preflight import account, cluster, surroundings
    from kerf.runtime.preflight.findings import WRONG, Finding
    from kerf.runtime.process import connecting
    from kerf.runtime.process.clock import SystemClock

    def poisoned(kind: Kind, problem: str) -> None:
        """Told of each object where it matters."""

    try:
        where = connecting.Where(kubeconfig, kube_context)
        kube = connecting.client(options, where, poisoned, patience=connecting.PATIENCE)
    except PortError as error:
        yield Finding("API server", WRONG, str(error), "name the cluster: --kubeconfig, --context")
        return
    known = list(cluster.look(kube, options.settings))
    yield from known
    yield from account.look(connecting.clients(options), options)
    if known[0].how == WRONG:
        return
    try:
        classes, pools = _all(kube, kinds.NODE_CLASS), _all(kube, kinds.NODE_POOL)
        yield from account.look_at_classes(connecting.cloud(options, kube, SystemClock()), classes)
    except PortError as error:
        yield Finding("EC2NodeClasses", WRONG, str(error))
        return
    yield from surroundings.look(kube, connecting.clients(options), options, pools, classes)


def _all(kube: KubeClient, kind: Kind) -> list[Any]:
    return list(kube.list(kind).items)
