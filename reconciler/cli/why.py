"""`kerf why pod NAMESPACE/NAME`: why a pod waits, from a live cluster or from files. It only reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reconciler.model.snapshot import Snapshot
    from reconciler.runtime.settings import Options

_USAGE = """\
kerf why pod [NAMESPACE/]NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why pod [NAMESPACE/]NAME -f PATH [-f PATH ...] [settings]

Says where a pod would go, what it waits for, or why it has no place: what each rule left of every NodePool's instance
types, what came nearest, and the smallest edit that helps. It lists and describes, and writes nothing.

  -f, --file PATH     a file, a folder, or - : what `kubectl get -o yaml` printed, or manifests; AWS is not asked
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig

With a live cluster AWS is asked as the controller does, with your own credentials. Settings are those of `kerf run`
(flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
Exit codes: 0 an answer; 1 there is no such pod, or something cannot be read; 2 the command is wrong."""


class Mistake(Exception):
    """The command makes no sense, in words."""


def why(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help="pod")] = "",
    name: Annotated[str, typer.Argument(help="namespace/name, or a name in namespace default")] = "",
    file: Annotated[list[str] | None, typer.Option("-f", "--file", help="a cluster from files; repeatable")] = None,
    kubeconfig: Annotated[str, typer.Option(help="kubeconfig file; empty: in the cluster, or kubectl's own")] = "",
    kube_context: Annotated[str, typer.Option("--context", help="context of the kubeconfig")] = "",
) -> None:
    """Why a pod waits: where it would go, or which rule is in the way and the smallest edit that helps."""
    if "--help" in context.args or "-h" in context.args or kind in ("--help", "-h", ""):
        typer.echo(_USAGE)
        return
    from reconciler.cli import account_page
    from reconciler.ports import PortError
    from reconciler.provisioning.why import UNKNOWN
    from reconciler.provisioning.why import why as explained

    try:
        key = _key(kind, name)
        options = _options(context.args, offline=bool(file))
        snapshot = _of_files(file, options) if file else _live(options, kubeconfig, kube_context)
    except Mistake as error:
        typer.echo(f"kerf why: {error}", err=True)
        raise typer.Exit(2) from error
    except PortError as error:
        typer.echo(f"kerf why: cannot look: {error}", err=True)
        raise typer.Exit(1) from error
    answer = explained(snapshot, key)
    typer.echo(account_page.page(answer), nl=False)
    if answer.code == UNKNOWN:
        raise typer.Exit(1)


def _key(kind: str, name: str) -> str:
    """`namespace/name`. Raises Mistake."""
    if kind.lower() not in ("pod", "pods", "po"):
        raise Mistake(f"{kind!r} cannot be asked about, only a pod can: kerf why pod NAMESPACE/NAME")
    if not name or name.startswith("-"):
        raise Mistake("which pod? kerf why pod NAMESPACE/NAME")
    namespace, slash, rest = name.partition("/")
    return f"{namespace}/{rest}" if slash else f"default/{name}"


def _options(arguments: list[str], *, offline: bool) -> Options:
    """The settings. Files need no cluster's name. Raises Mistake."""
    from reconciler.runtime import settings

    given = dict(os.environ)
    if offline:
        given.setdefault("CLUSTER_NAME", "files")
    try:
        return settings.parse(arguments, given)
    except settings.SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error


def _live(options: Options, kubeconfig: str, kube_context: str) -> Snapshot:
    from reconciler.model.kinds import Kind
    from reconciler.runtime import connecting, looking
    from reconciler.runtime.clock import SystemClock
    from reconciler.runtime.settings import SettingsError

    def poisoned(kind: Kind, problem: str) -> None:
        typer.echo(f"kerf why: a {kind.name} cannot be read: {problem}", err=True)

    clock = SystemClock()
    kube = connecting.client(options, connecting.Where(kubeconfig, kube_context), poisoned)
    try:
        cloud = connecting.cloud(options, kube, clock)
    except SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error
    return looking.look(kube, cloud, options.settings, clock)


def _of_files(paths: list[str], options: Options) -> Snapshot:
    from reconciler.cli import cluster_files, sources
    from reconciler.runtime import looking
    from reconciler.runtime.clock import SystemClock

    try:
        found = cluster_files.read(sources.find(paths))
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    types = cluster_files.ShippedTypes.beside(found.objects)
    count = len(types.region().types)
    typer.echo(f"{count} instance types that come with Kerf, in {', '.join(types.zones)}; AWS was not asked.\n")
    return looking.look(found, types, options.settings, SystemClock())
