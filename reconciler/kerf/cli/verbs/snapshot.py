"""`kerf snapshot`: save what decisions depend on, without secrets, for `kerf why --snapshot` and `kerf plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.answering import saved
from kerf.cli.arguments import Files, Kubeconfig, KubeContext, Mistake, with_fix
from kerf.cli.operating import debug_port
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.snapshots.captured import Captured

_USAGE: Final = f"""\
kerf snapshot -o FILE [--kubeconfig FILE] [--context NAME] [settings]
kerf snapshot -o FILE --controller [--url URL]
kerf snapshot -o FILE -f PATH [-f PATH ...] [settings]

Saves what decisions depend on: pods, nodes, NodePools and the other objects that Kerf watches, and its view of AWS.
`kerf why ... --snapshot FILE` and `kerf plan --snapshot FILE` read it, without the cluster and without AWS.

The file has no environment variables, commands, arguments, Secrets or ConfigMaps, and of annotations only those that
decisions read; in place of user data it has a digest. It has names, labels and prices: --hash-names replaces names.
Only its owner may read it (mode 0600).

A live cluster is read with your own credentials, and AWS as the controller reads it. --controller asks the running
controller instead: the file then has what only its memory contains, such as back-offs and offerings out of stock.

{debug_port.WHERE.format(command="kerf snapshot -o - --controller")}

  -o, --output FILE   the file; - is standard output
  -f, --file PATH     a file, a folder, or - : what `kubectl get -o yaml` printed, or manifests; AWS is not asked
  --controller        ask the controller's debug port
  --url URL           the debug port; http://127.0.0.1:8082 by default, or DEBUG_PORT
  --hash-names        pseudonyms in place of names, labels and namespaces; their order stays
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig

Settings are those of `kerf run` (flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
KERF_DIGEST_KEY is the key of the digests, to compare user data later; without it the key is random and not kept.
Exit codes: 0 saved; 1 something cannot be read or written; 2 the command is wrong."""
_CONTROLLER: Final = "--controller"


def snapshot(
    context: typer.Context,
    output: Annotated[str, typer.Option("-o", "--output", help="the file; - is standard output")] = "",
    file: Files = None,
    url: Annotated[str, typer.Option(help="the debug port")] = "",
    hash_names: Annotated[bool, typer.Option("--hash-names", help="pseudonyms in place of names")] = False,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
) -> None:
    """Save what decisions depend on, without secrets; `kerf why` and `kerf plan` read it."""
    if {"-h", "--help"} & {*context.args}:
        say(_USAGE, prose=True)
        return
    from kerf.ports import PortError

    try:
        if not output:
            raise Mistake("-o FILE: the file to write is missing")
        arguments = [word for word in context.args if word != _CONTROLLER]
        if url or _CONTROLLER in context.args:
            if file or arguments:
                raise Mistake("--controller: the controller has its own settings")
            data = debug_port.ask(url, "/debug/snapshot", seconds=60)
            data = _renamed(data) if hash_names else data
        else:
            from kerf.cli.answering import captures

            found = _found(arguments, file or [], kubeconfig, kube_context)
            data = captures.compressed(found, hash_names=hash_names)
        saved.write(output, [data])
    except Mistake as error:
        say(f"kerf snapshot: {error}", err=True)
        raise typer.Exit(2) from error
    except debug_port.Silent as error:
        raise debug_port.fail("snapshot", error) from error
    except (PortError, OSError) as error:
        say(f"kerf snapshot: {with_fix(error)}", err=True)
        raise typer.Exit(1) from error


def bundle(context: typer.Context) -> None:
    """Save one archive for support: snapshot, record, status, settings and versions, without secrets."""
    from kerf.cli.answering import bundle as archive

    raise typer.Exit(archive.main(context.args))


def _found(arguments: list[str], paths: list[str], kubeconfig: str, kube_context: str) -> Captured:
    """Raises Mistake, PortError."""
    from kerf.cli.answering import captures

    options = captures.options(arguments, offline=bool(paths))
    if paths:
        return captures.of_manifests(paths, options)[0]
    return captures.live("snapshot", options, kubeconfig, kube_context)


def _renamed(data: bytes) -> bytes:
    """The same file with pseudonyms. Raises Mistake when it is none."""
    from kerf.snapshots import files, naming, reading

    try:
        return files.compressed(naming.renamed(files.lines(data)))
    except reading.Unreadable as error:
        raise Mistake(f"what the controller has sent is no snapshot: {error}") from error
