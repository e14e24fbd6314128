"""`kerf release`: after an uninstall, take Kerf's finalizers off, so that what is deleted does not wait forever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.kube.client import KubeClient

_USAGE: Final = """\
After an uninstall, remove Kerf's finalizers, so that deleted objects do not wait forever.

For after `helm uninstall`: Nodes, NodeClaims and EC2NodeClasses carry finalizers, with which a controller drains nodes
and terminates instances before the objects are deleted. Without a controller their deletion would wait forever. This
command removes the finalizers. Nodes and instances continue to run; from then on you have to terminate them.

To terminate the nodes instead, delete the NodePools before you uninstall, and wait:
kubectl annotate nodepools --all kerf.sh/allow-deletion=all
kubectl delete nodepools --all

Without --yes it only lists the changes. While a controller is at work it refuses.
Exit codes: 0 done (or listed); 1 a controller is at work, or something could not be done."""


def release(
    yes: Annotated[bool, typer.Option("--yes", help="do it")] = False,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
) -> None:
    from kerf.ports import PortError

    try:
        done = _released(_client(kubeconfig, kube_context), yes=yes)
    except PortError as error:
        say(f"kerf release: {error}", err=True)
        raise typer.Exit(1) from error
    if not done:
        raise typer.Exit(1)


release.__doc__ = _USAGE


def _client(kubeconfig: str, kube_context: str) -> KubeClient:
    from kerf.runtime.process import connecting
    from kerf.runtime.settings.options import Options

    where = connecting.Where(kubeconfig, kube_context)
    return connecting.client(Options(), where, lambda kind, problem: None, patience=connecting.PATIENCE)


def _released(kube: KubeClient, *, yes: bool) -> bool:
    """Whether nothing kept us from it."""
    from kerf.runtime.process import releasing
    from kerf.runtime.process.clock import SystemClock

    found = list(releasing.held(kube))
    if not found:
        say("nothing carries a finalizer of Kerf's")
        return True
    if leaders := releasing.holders(kube, SystemClock()):
        say(f"a controller is at work ({', '.join(leaders)}): uninstall it first", err=True)
        return False
    for one in found:
        waits = ", which waits for its deletion" if one.deleting else ""
        say(f"{'removes' if yes else 'would remove'} {one.finalizer} from {one.ref}{waits}")
        if yes:
            releasing.release(kube, one)
    if not yes:
        say("\nNothing was changed: run the command again with --yes to release. Nodes and instances continue to run.")
    return True
