"""`kerf why`: why a pod waits, why a node stays or goes, why a NodePool makes no nodes. It only reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kerf.cli.arguments import Files, Kubeconfig, KubeContext, Output

if TYPE_CHECKING:
    from datetime import datetime

    from kerf.kube.client import KubeClient
    from kerf.model.failures import Failure
    from kerf.model.snapshot import Snapshot
    from kerf.runtime.settings.options import Options

_USAGE = """\
kerf why pod [NAMESPACE/]NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why node NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why nodeclaim NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why nodepool NAME [--kubeconfig FILE] [--context NAME] [settings]
kerf why pod|node|nodeclaim|nodepool NAME -f PATH [-f PATH ...] [settings]

A pod: its node, the reason for its wait, or the reasons of all NodePools: the instance types left after each rule, the
nearest one, and the smallest edit that helps.
A node (by the name of its Node or NodeClaim, or by the ID of its instance) or a NodeClaim: its stage, the causes that
can terminate it and when, everything that blocks them, the single change that would allow it with its savings, and the
budgets of its NodePool.
A NodePool: whether nodes can be made from it, its conditions and those of its EC2NodeClass that are not True, its
back-off, limits and budgets.
Failing actions are named with their error, as events report them. The command only lists and reads objects.

  -f, --file PATH     a file, a folder, or - : what `kubectl get -o yaml` printed, or manifests; AWS is not asked
  --kubeconfig FILE   the cluster; as kubectl would without it
  --context NAME      context of the kubeconfig
  -o, --output FORMAT text or json; text by default

With a live cluster AWS is asked as the controller does, with your own credentials. Settings are those of `kerf run`
(flags or variables); CLUSTER_NAME (--cluster-name) is required for a live cluster.
Exit codes: 0 an answer; 1 there is no such object, or something cannot be read; 2 the command is wrong."""


#: Of fewer answers that are slow nothing is said: this command needs few.
_FEWEST_ANSWERS: Final = 3
Answered = Callable[["Snapshot", str, bool], tuple[str, bool]]
_NOUNS: Final = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no", "nodeclaim", "nodeclaims"), "node"),
    **dict.fromkeys(("nodepool", "nodepools"), "nodepool"),
}


class Mistake(Exception):
    """The command makes no sense, in words."""


def why(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help="pod, node, nodeclaim or nodepool")] = "",
    name: Annotated[str, typer.Argument(help="of a pod namespace/name, or a name in namespace default")] = "",
    file: Files = None,
    kubeconfig: Kubeconfig = "",
    kube_context: KubeContext = "",
    output: Output = "text",
) -> None:
    """Why a pod waits, and the smallest edit that helps; why a node stays or goes, and when."""
    if {"-h", "--help"} & {kind, name, *context.args}:
        typer.echo(_USAGE)
        return
    if not kind:
        typer.echo(_USAGE, err=True)
        raise typer.Exit(2)
    from kerf.ports import PortError

    try:
        answered = _asked_about(kind, name)
        if output not in ("text", "json"):
            raise Mistake(f"--output: {output!r} is neither text nor json")
        options = _options(context.args, offline=bool(file))
        snapshot = _of_files(file, options, told=output == "text") if file else _live(options, kubeconfig, kube_context)
    except Mistake as error:
        typer.echo(f"kerf why: {error}", err=True)
        raise typer.Exit(2) from error
    except PortError as error:
        typer.echo(f"kerf why: cannot look: {error}", err=True)
        raise typer.Exit(1) from error
    text, known = answered(snapshot, name, output == "json")
    typer.echo(text, nl=False)
    if not known:
        raise typer.Exit(1)


def _asked_about(kind: str, name: str) -> Answered:
    """Who answers. Raises Mistake."""
    noun = _NOUNS.get(kind.lower())
    if noun is None:
        known = "a pod, a node, a NodeClaim or a NodePool can: kerf why pod NAMESPACE/NAME, kerf why node NAME"
        raise Mistake(f"{kind!r} cannot be asked about, {known}")
    if not name or name.startswith("-"):
        raise Mistake(f"which {noun}? kerf why {noun} {'NAMESPACE/NAME' if noun == 'pod' else 'NAME'}")
    return {"pod": _pod, "node": _node, "nodepool": _pool}[noun]


def _pod(snapshot: Snapshot, name: str, as_json: bool) -> tuple[str, bool]:
    """The page (or the same as JSON), and whether there is such a pod."""
    from kerf.cli.answering import account_page, answers
    from kerf.provisioning.why import UNKNOWN, why

    namespace, slash, rest = name.partition("/")
    answer = why(snapshot, f"{namespace}/{rest}" if slash else f"default/{name}")
    return answers.as_json(answer) if as_json else account_page.page(answer), answer.code != UNKNOWN


def _node(snapshot: Snapshot, name: str, as_json: bool) -> tuple[str, bool]:
    """The page (or the same as JSON), and whether there is such a node."""
    from kerf.cli.answering import answers, node_page
    from kerf.judgement.judge import why
    from kerf.judgement.values import UNKNOWN

    found = why(snapshot, name.removeprefix("node/"))
    return answers.as_json(found) if as_json else node_page.page(found, snapshot.now), found.code != UNKNOWN


def _pool(snapshot: Snapshot, name: str, as_json: bool) -> tuple[str, bool]:
    """The page (or the same as JSON), and whether there is such a NodePool."""
    from kerf.cli.answering import answers, pool_page
    from kerf.judgement.pools import UNKNOWN, why

    found = why(snapshot, name.removeprefix("nodepool/"))
    return answers.as_json(found) if as_json else pool_page.page(found, snapshot.now), found.code != UNKNOWN


def _options(arguments: list[str], *, offline: bool) -> Options:
    """The settings. Files need no cluster's name. Raises Mistake."""
    from kerf.runtime.settings import settings

    given = dict(os.environ)
    if offline:
        given.setdefault("CLUSTER_NAME", "files")
    try:
        return settings.parse(arguments, given)
    except settings.SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error


def _live(options: Options, kubeconfig: str, kube_context: str) -> Snapshot:
    from kerf.model.kinds import Kind
    from kerf.runtime.leadership.leases import USUAL, LeaseName
    from kerf.runtime.observe import looking
    from kerf.runtime.observe.answer_times import AnswerTimes
    from kerf.runtime.process import connecting
    from kerf.runtime.process.clock import SystemClock
    from kerf.runtime.settings.settings import SettingsError

    def poisoned(kind: Kind, problem: str) -> None:
        typer.echo(f"kerf why: a {kind.name} cannot be read: {problem}", err=True)

    clock, times = SystemClock(), AnswerTimes()
    where = connecting.Where(kubeconfig, kube_context)
    kube = connecting.client(options, where, poisoned, watched=times, patience=connecting.PATIENCE)
    try:
        cloud = connecting.cloud(options, kube, clock)
    except SettingsError as error:
        raise Mistake("\n".join(error.problems)) from error
    spaces = {options.leader_election_namespace, options.system_namespace, "kerf"} - {""}
    places = {LeaseName(space, options.leader_election_name) for space in spaces} | {*USUAL, *options.karpenter_leases}
    found = looking.look(kube, cloud, options.settings, clock)
    since = looking.stored_since(kube, sorted(places))
    reported = _reported(kube, found.now)
    if slow := times.slow(_FEWEST_ANSWERS):
        typer.echo(f"kerf why: the API server answers slowly: {slow}", err=True)
    return replace(found, leading_since=None if since is None else min(since, found.now), failures=reported)


def _reported(kube: KubeClient, now: datetime) -> dict[str, Failure]:
    """The failing actions, as far as events may be read."""
    from kerf.ports import PortError
    from kerf.runtime.observe import reported

    try:
        return reported.read(kube, now)
    except PortError as error:
        words = "not checked: actions that fail: needs permission to list events in all namespaces"
        typer.echo(f"kerf why: {words} ({error})", err=True)
        return {}


def _of_files(paths: list[str], options: Options, *, told: bool) -> Snapshot:
    from kerf.cli.answering import cluster_files
    from kerf.cli.gathering import sources
    from kerf.runtime.observe import looking
    from kerf.runtime.process.clock import SystemClock

    try:
        found = cluster_files.read(sources.find(paths))
    except (sources.NotFound, cluster_files.BadFile) as error:
        raise Mistake(str(error)) from error
    types = cluster_files.ShippedTypes.beside(found.objects)
    if told:
        count = len(types.region().types)
        typer.echo(f"{count} instance types that come with Kerf, in {', '.join(types.zones)}; AWS was not asked.\n")
    return looking.look(found, types, options.settings, SystemClock())
