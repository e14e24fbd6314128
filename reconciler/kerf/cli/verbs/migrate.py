"""`kerf migrate check`: what will change when Kerf takes a cluster over from Karpenter. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.arguments import Files, Kubeconfig, KubeContext, Output
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.cli.migration.migrate_sources import Cluster

_USAGE: Final = """\
kerf migrate check [--kubeconfig FILE] [--context NAME] [-o text|json] [settings]
kerf migrate check -f PATH [-f PATH ...] [-o text|json] [settings]

What will change when Kerf takes this cluster over from Karpenter: objects that do not pass, settings of the running
controller that Kerf does not have or has otherwise, nodes that would be disrupted, missing parts. Nothing is changed.

  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig
  -f, --file PATH     files instead of a cluster, from
                      kubectl get -o yaml nodepools,ec2nodeclasses,nodeclaims,nodes,pods,deployments,sa -A

Settings are those of `kerf run`; by default those that Karpenter's Deployment has. With a cluster AWS is asked as the
controller does, with your own credentials. Files have no facts of AWS: checks that need them report "unknown".
Exit codes: 0 nothing blocks the migration; 1 something does; 2 something cannot be read, or the command is wrong."""


def migrate(
    context: typer.Context,
    verb: Annotated[str, typer.Argument(help="check")] = "",
    file: Files = None,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    output: Output = "text",
) -> None:
    """What will change when Kerf takes a cluster over from Karpenter."""
    if "--help" in context.args or "-h" in context.args or verb in ("--help", "-h"):
        say(_USAGE, prose=True)
        return
    if not verb:
        say(_USAGE, err=True, prose=True)
        raise typer.Exit(2)
    from kerf.cli.migration import migrate_page
    from kerf.ports import PortError

    if verb != "check" or output not in ("text", "json"):
        wrong = (
            f"--output: {output!r} is neither text nor json"
            if verb == "check"
            else f"{verb!r}: no such command; the only one is kerf migrate check"
        )
        say(f"kerf migrate: {wrong}", err=True)
        raise typer.Exit(2)
    try:
        sections = migrate_page.sections(_cluster(file, kubeconfig, kube_context), context.args)
    except (migrate_page.Mistake, PortError) as error:
        say(f"kerf migrate check: {error}", err=True)
        raise typer.Exit(2) from error
    if output == "json":
        typer.echo(migrate_page.as_json(sections), nl=False)
    else:
        say(migrate_page.text(sections), end="")
    if migrate_page.in_the_way(sections):
        raise typer.Exit(1)


def _cluster(paths: list[str] | None, kubeconfig: str, kube_context: str) -> Cluster:
    """Raises Mistake, PortError."""
    from kerf.cli.answering import cluster_files
    from kerf.cli.gathering import sources
    from kerf.cli.migration import migrate_page, migrate_sources

    try:
        return migrate_sources.files(paths) if paths else migrate_sources.live(kubeconfig, kube_context)
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise migrate_page.Mistake(str(error)) from error
