"""`kerf events`: the events and conditions of one object, or of all, the newest first. It only reads."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kerf.cli.arguments import Kubeconfig, KubeContext, Mistake, Output, begun, exits
from kerf.cli.parser import meant
from kerf.cli.terminal import say

if TYPE_CHECKING:
    from datetime import datetime

    from kerf.cli.events.reading import Found
    from kerf.cli.events.records import Subject

_USAGE: Final = """\
kerf events [KIND/NAME | KIND NAME | KIND] [-n NAMESPACE] [--since DURATION] [--limit N] [-o FORMAT]
kerf events pod [NAMESPACE/]NAME
kerf events node NAME
kerf events nodeclaim NAME
kerf events nodepool NAME

Actions of Kerf and the state of its objects, newest first: the events that Kerf wrote, and each condition of NodePools,
EC2NodeClasses and NodeClaims with its last transition. Equal events are one line with their number.
A node (by the name of its Node or NodeClaim, or by the ID of its instance) includes both objects, the pods that Kerf
evicted from it and the pods nominated for it, also after its deletion.
A NodePool includes its NodeClaims and Nodes. Without a name all objects are listed.
The API server keeps events for an hour by default. The command only lists and reads objects; without a permission it
lists all others, and reports the missing permission as not checked.

  -n, --namespace NS  namespace of the pod; default without it, and all namespaces without a name
  --since DURATION    nothing older, such as 30m or 24h
  --limit N           number of lines; 100 by default, 0 for all
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig
  -o, --output FORMAT text or json; text by default

Exit codes: 0 an answer; 1 there is no such object, or something cannot be read; 2 the command is wrong."""
_OPTIONS: Final = ("--namespace", "--since", "--limit", "--kubeconfig", "--context", "--output", "--help")
_OFTEN: Final = ("pod", "node", "nodeclaim", "nodepool", "ec2nodeclass")
#: Short names, as kubectl has them.
_SHORT: Final = {"po": "Pod", "no": "Node", "pdb": "PodDisruptionBudget", "ec2nc": "EC2NodeClass"}


def events(
    words: Annotated[
        list[str] | None, typer.Argument(help="KIND/NAME, KIND NAME or KIND", autocompletion=begun(_OFTEN))
    ] = None,
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="namespace of the pod")] = "",
    since: Annotated[str, typer.Option(help="nothing older, such as 30m")] = "",
    limit: Annotated[int, typer.Option(help="number of lines; 0: all")] = 100,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    output: Output = "text",
) -> None:
    """Events and conditions of a node, a pod, a NodePool or of all objects: the actions of Kerf, newest first."""
    if {"-h", "--help"} & {*(words or ())}:
        say(_USAGE, prose=True)
        return
    from kerf.cli.events import page, reading
    from kerf.runtime.process.clock import SystemClock

    now = SystemClock().now()
    with exits("events"):
        subject = _subject(words or [], namespace)
        begin = reading.ago(now, _span(since))
        _checked(limit, output)
        found = reading.look(_kube(kubeconfig, kube_context), subject, begin)
    if output == "json":
        typer.echo(page.as_json(found, subject, limit), nl=False)
    else:
        say(page.text(found, limit, now), end="")
    _leave(found, subject, begin)


def _subject(words: list[str], namespace: str) -> Subject:
    """The object that the words name. Raises Mistake."""
    from kerf.cli.events.records import Subject
    from kerf.model import kinds

    option = next((word for word in words if word.startswith("-")), "")
    if option:
        raise Mistake(f"there is no option {option}{meant(option.partition('=')[0], _OPTIONS)}")
    if not words:
        return Subject("", namespace)
    noun, _, name = words[0].partition("/") if len(words) == 1 else (words[0], "", "/".join(words[1:]))
    if len(words) > 2:
        raise Mistake(f"one object at a time: {' '.join(words)}")
    kind = _kind(noun)
    known = kinds.BY_NAME.get(kind)
    if known is None or known.cluster_scoped:
        if "/" in name or (namespace and known is not None):
            raise Mistake(f"a {kind} has no namespace: kerf events {noun} NAME")
        return Subject(kind, namespace, name)
    space, slash, rest = name.partition("/")
    if slash and namespace and space != namespace:
        raise Mistake(f"{name} is not in namespace {namespace}: leave -n out, or correct it")
    if slash and not (space and rest):
        raise Mistake(f"{name!r} is no name of a {kind}: kerf events {noun} NAMESPACE/NAME")
    return Subject(kind, (space if slash else namespace) or ("default" if name else ""), rest if slash else name)


def _kind(noun: str) -> str:
    """The name of the kind that a person calls so. Raises Mistake."""
    from kerf.model import kinds

    nouns = {**_SHORT, "lease": "Lease", "leases": "Lease"}
    for kind in kinds.KNOWN:
        nouns |= {kind.name.lower(): kind.name, kind.plural: kind.name}
    found = nouns.get(noun.lower().partition(".")[0])
    if found is None:
        raise Mistake(f"{noun!r} is no kind that Kerf writes events on{meant(noun.lower(), nouns)}")
    return found


def _span(since: str) -> timedelta | None:
    from kerf_api import durations

    found = durations.parse_go(since) if since else None
    if since and found is None:
        raise Mistake(f"--since: {since!r} is no duration; write hours and minutes, such as 24h or 1h30m")
    return found


def _checked(limit: int, output: str) -> None:
    if limit < 0:
        raise Mistake(f"--limit: {limit} is negative; 0 prints all")
    if output not in ("text", "json"):
        raise Mistake(f"--output: {output!r} is neither text nor json")


def _kube(kubeconfig: str, kube_context: str) -> Any:
    from kerf.runtime.process import connecting
    from kerf.runtime.settings.options import Options

    def poisoned(kind: Any, problem: str) -> None:
        say(f"kerf events: a {kind.name} cannot be read: {problem}", err=True)

    where = connecting.Where(kubeconfig, kube_context)
    return connecting.client(Options(), where, poisoned, patience=connecting.PATIENCE)


def _leave(found: Found, subject: Subject, begin: datetime | None) -> None:
    """Report an empty answer, with 1 when there is no such object or nothing could be read."""
    if not found.answered:
        raise typer.Exit(1)
    if found.rows:
        return
    if subject.name and found.exists is False:
        say(f"kerf events: there is no {subject}, and no event of it{meant(subject.name, found.known)}", err=True)
        raise typer.Exit(1)
    about = f" of {subject}" if str(subject) else ""
    say(f"kerf events: no event and no condition{about}" + (" in that time" if begin is not None else ""), err=True)
