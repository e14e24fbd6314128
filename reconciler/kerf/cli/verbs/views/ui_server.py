"""`kerf ui-server`: the page of `kerf ui` in a cluster, for people whom the API server knows. It only reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext, exits
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.model.kinds import Kind

#: More than the threads of reviews reach.
_REVIEWS_A_SECOND: Final = 10_000
#: How often a review is sent again when the API server is too busy.
_PATIENCE: Final = 2
_USAGE: Final = """\
kerf ui-server [--cert-file FILE --key-file FILE] [--bind ADDRESS] [--host NAME ...] [options]

Serves the page of kerf ui in a cluster (ui.enabled in the chart). Each request needs a bearer token, which the API
server reviews. A person must be allowed to list nodes, NodePools, NodeClaims and EC2NodeClasses. Names of pods,
workloads and PodDisruptionBudgets are shown for the namespaces whose pods the person may list.
AWS is not asked: instance types and prices are those that are part of Kerf.

  --cert-file FILE       TLS certificate chain, PEM; read again when it changes. Without it the page listens on the
                         loopback address only
  --key-file FILE        TLS private key, PEM
  --bind ADDRESS         address and port; :8445 with a certificate, 127.0.0.1:8445 without
  --health-bind ADDRESS  /healthz, /readyz and /metrics over plain HTTP; none by default
  --host NAME            a name (or NAME:PORT) by which the page may be asked for; may be repeated
  --audience NAME        the audience of tokens, kerf-ui by default; may be repeated
  --proxy-ca-file FILE   CA of the client certificates of authenticating proxies (X-Remote-User, -Group, -Extra-*)
  --proxy-name NAME      common name or DNS name of such a certificate; may be repeated
  --refresh-seconds N    time between two readings of the cluster, 60 by default
  --kubeconfig FILE      the cluster; the pod's ServiceAccount, or as kubectl would, without it
  --context NAME         context of the kubeconfig

Settings are the variables of `kerf run`; CLUSTER_NAME is required.
Exit codes: 0 ended by a signal; 1 the address is in use, or a file cannot be read; 2 the command is wrong."""


def ui_server(context: typer.Context, kubeconfig: Kubeconfig = "", kube_context: KubeContext = "") -> None:
    """Serve the page of kerf ui in a cluster, for people whom the API server knows."""
    if {"-h", "--help"} & {*context.args}:
        say(_USAGE, prose=True)
        return

    with exits("ui-server"):
        _serve(context.args, kubeconfig, kube_context)


def _serve(arguments: list[str], kubeconfig: str, kube_context: str) -> None:
    """Until a signal. Raises Mistake, PortError."""
    from kerf.cli.answering import captures
    from kerf.cli.gate import options, serving
    from kerf.runtime.process import connecting
    from kerf.runtime.process.clock import SystemClock

    chosen, settings = options.read(arguments), captures.options([], offline=False)
    where = connecting.Where(kubeconfig, kube_context)

    def poisoned(kind: Kind, problem: str) -> None:
        _report(f"a {kind.name}: {problem}")

    # KUBE_CLIENT_QPS is the pace of the readings. Reviews are bounded by their number at once.
    unpaced = replace(settings, kube_client_qps=_REVIEWS_A_SECOND, kube_client_burst=_REVIEWS_A_SECOND)
    clients = serving.Clients(
        connecting.client(settings, where, poisoned),
        connecting.client(unpaced, where, poisoned, patience=_PATIENCE),
    )
    try:
        serving.run(clients, chosen, settings.settings, SystemClock(), _report)
    except (OSError, OverflowError) as error:
        _report(f"cannot listen: {error}")
        raise typer.Exit(1) from error


def _report(text: str) -> None:
    say(f"kerf ui-server: {text}", err=True)
