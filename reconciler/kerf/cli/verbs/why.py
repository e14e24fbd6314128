"""`kerf why`: why a pod waits, why a node stays or is removed, why a NodePool makes no nodes. It only reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.arguments import Files, Kubeconfig, KubeContext, Mistake, Output, begun, exits
from kerf.cli.parser import meant
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from kerf.model.snapshot import Snapshot

_USAGE = """\
kerf why pod [NAMESPACE/]NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why node NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why nodeclaim NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why nodepool NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why pod|node|nodeclaim|nodepool NAME -f PATH [-f PATH ...] [settings]
kerf why pod|node|nodeclaim|nodepool NAME --snapshot FILE
kerf why pod|node|nodeclaim|nodepool NAME --record DIR [--at TIME]

A pod: its node, the reason for its wait, or the reasons of all NodePools: the instance types left after each rule, the
nearest one, and the smallest edit that helps.
A node (by the name of its Node or NodeClaim, or by the ID of its instance) or a NodeClaim: its stage, the causes that
can terminate it and when, everything that blocks them, the single change that would allow it with its savings, and the
budgets of its NodePool.
A NodePool: whether Kerf can launch nodes from it, its conditions and those of its EC2NodeClass that are not True, its
back-off, limits and budgets.
Failing actions are named with their error, as events report them. The command only lists and reads objects.

  -f, --file PATH     a file, a folder, or - : what `kubectl get -o yaml` printed, or manifests; AWS is not asked
  --snapshot FILE     what `kerf snapshot` saved; neither the cluster nor AWS is asked
  --record DIR        the record of a controller (RECORD_FOLDER), one of its files, or s3://BUCKET/PREFIX: the cluster
                      of its last decision
  --at TIME           with --record: the cluster of the latest decision up to then; RFC 3339, UTC without a zone
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig
  -o, --output FORMAT text or json; text by default

With a live cluster AWS is asked as the controller does, with your own credentials. Settings are those of `kerf run`
(flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
Exit codes: 0 an answer; 1 there is no such object, or the cluster does not answer; 2 the command or a
file is wrong."""


Answered = Callable[["Snapshot", str, bool], tuple[str, bool]]
_KINDS: Final = ("pod", "node", "nodeclaim", "nodepool")
_NOUNS: Final = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no", "nodeclaim", "nodeclaims"), "node"),
    **dict.fromkeys(("nodepool", "nodepools"), "nodepool"),
}


def why(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help="pod, node, nodeclaim or nodepool", autocompletion=begun(_KINDS))] = "",
    name: Annotated[str, typer.Argument(help="of a pod namespace/name, or a name in namespace default")] = "",
    file: Files = None,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    output: Output = "text",
) -> None:
    """Why a pod waits, and the smallest edit that helps; why a node stays or is removed, and when."""
    if {"-h", "--help"} & {kind, name, *context.args}:
        say(_USAGE, prose=True)
        return
    if not kind:
        say(_USAGE, err=True, prose=True)
        raise typer.Exit(2)

    with exits("why"):
        answered, name = _asked_about(kind, name)
        if output not in ("text", "json"):
            raise Mistake(f"--output: {output!r} is neither text nor json")
        found = _found(context.args, file or [], (kubeconfig, kube_context), told=output == "text")
    text, known = answered(found, name, output == "json")
    if output == "json":
        typer.echo(text, nl=False)
    else:
        say(text, end="")
    if not known:
        raise typer.Exit(1)


def _found(arguments: list[str], paths: list[str], where: tuple[str, str], *, told: bool) -> Snapshot:
    """Where the answer comes from. Raises Mistake, PortError."""
    from kerf.cli.answering import captures

    origin = captures.origin("why", arguments, paths, where)
    if told and origin.words:
        say(f"{origin.words}\n")
    return origin.read()


def _asked_about(kind: str, name: str) -> tuple[Answered, str]:
    """Who answers, and the name without its kind. Raises Mistake."""
    noun = _NOUNS.get(kind.lower())
    if noun is None:
        known = "kerf why pod NAMESPACE/NAME, kerf why node NAME, kerf why nodepool NAME"
        near = meant(kind, ("pod", "node", "nodeclaim", "nodepool"))
        raise Mistake(f"{kind!r} is neither pod, node, nodeclaim nor nodepool{near}; write {known}")
    if not name or name.startswith("-"):
        raise Mistake(f"which {noun}? kerf why {noun} {'NAMESPACE/NAME' if noun == 'pod' else 'NAME'}")
    parts, most = name.split("/"), 2 if noun == "pod" else 1
    if len(parts) > most and _NOUNS.get(parts[0].lower()) == noun:
        parts = parts[1:]
    if not all(parts) or len(parts) > most:
        raise Mistake(f"{name!r} is no name of a {noun}; write {'NAMESPACE/NAME' if noun == 'pod' else 'NAME'}")
    return {"pod": _pod, "node": _node, "nodepool": _pool}[noun], "/".join(parts)


def _pod(snapshot: Snapshot, name: str, as_json: bool) -> tuple[str, bool]:
    """The page (or the same as JSON), and whether there is such a pod."""
    from kerf.cli.answering import account_page, answers
    from kerf.provisioning.why import UNKNOWN, why

    namespace, slash, rest = name.partition("/")
    answer = why(snapshot, f"{namespace}/{rest}" if slash else f"default/{name}")
    return answers.as_json(answer, snapshot.now) if as_json else account_page.page(answer), answer.code != UNKNOWN


def _node(snapshot: Snapshot, name: str, as_json: bool) -> tuple[str, bool]:
    """The page (or the same as JSON), and whether there is such a node."""
    from kerf.cli.answering import answers, node_page
    from kerf.judgement.judge import why
    from kerf.judgement.values import UNKNOWN

    found = why(snapshot, name)
    return answers.as_json(found, snapshot.now) if as_json else node_page.page(
        found, snapshot.now
    ), found.code != UNKNOWN


def _pool(snapshot: Snapshot, name: str, as_json: bool) -> tuple[str, bool]:
    """The page (or the same as JSON), and whether there is such a NodePool."""
    from kerf.cli.answering import answers, pool_page
    from kerf.judgement.pools import UNKNOWN, why

    found = why(snapshot, name)
    return answers.as_json(found, snapshot.now) if as_json else pool_page.page(
        found, snapshot.now
    ), found.code != UNKNOWN
